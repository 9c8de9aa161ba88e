package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const rebootsFile = "reboots.json"

// reboots counts what one stream has cost so far.
type reboots struct {
	Generation string `json:"generation"`
	Count      int    `json:"count"`
}

// CountReboot adds one to the reboots of a stream and returns their number. The count is on disk when it returns; it
// starts again with another stream.
func (j *Journal) CountReboot(generation string) (int, error) {
	counted := reboots{}
	path := filepath.Join(j.dir, rebootsFile)
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return 0, stateError(err)
	default:
		if err := json.Unmarshal(data, &counted); err != nil {
			return 0, stateError(fmt.Errorf("%s: %w", path, err))
		}
	}
	if counted.Generation != generation {
		counted = reboots{Generation: generation}
	}
	counted.Count++
	if data, err = json.Marshal(counted); err != nil {
		return 0, stateError(err)
	}
	return counted.Count, j.write(rebootsFile, append(data, '\n'), 0o600)
}

// ForgetReboots starts the count again: the stream has succeeded.
func (j *Journal) ForgetReboots() error {
	err := os.Remove(filepath.Join(j.dir, rebootsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return stateError(err)
}
