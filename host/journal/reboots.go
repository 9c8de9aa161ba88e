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
	counted, err := j.reboots()
	if err != nil {
		return 0, stateError(err)
	}
	if counted.Generation != generation {
		counted = reboots{Generation: generation}
	}
	counted.Count++
	data, err := json.Marshal(counted)
	if err != nil {
		return 0, stateError(err)
	}
	return counted.Count, j.write(rebootsFile, append(data, '\n'))
}

func (j *Journal) reboots() (reboots, error) {
	path := filepath.Join(j.dir, rebootsFile)
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return reboots{}, nil
	case err != nil:
		return reboots{}, err
	}
	var counted reboots
	if err = json.Unmarshal(data, &counted); err == nil && counted.Count < 1 {
		err = errors.New("it holds no count")
	}
	if err != nil {
		return reboots{}, fmt.Errorf("%s is damaged: %w; remove it, and the count starts again", path, err)
	}
	return counted, nil
}

// ForgetReboots starts the count again: the stream has succeeded.
func (j *Journal) ForgetReboots() error {
	err := os.Remove(filepath.Join(j.dir, rebootsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return stateError(err)
}
