package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/internal/rooted"
)

// ImageChoices is the file of an image with the providers chosen in its bake. It is beside the state, which has another name
// for the machine's.
const ImageChoices = "/ProgramData/machineadm/image-choices.json"

// ImageWrites is the record of an image.
const ImageWrites = `C:\ProgramData\machineadm\.pending`

// absent reports that a path does not exist, so that it has no leftovers.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func removeAt(dir *os.File, base string) error { return os.Remove(filepath.Join(dir.Name(), base)) }

// makeDir creates a directory and its parents.
func makeDir(root *rooted.Root, name string) (*os.File, error) {
	inside, relative, err := root.Enter(name)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(inside.MkdirAll(relative, 0o755), inside.Close()); err != nil {
		return nil, err
	}
	return root.OpenDir(name)
}
