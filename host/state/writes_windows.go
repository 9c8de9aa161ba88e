package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/internal/rooted"
)

// ImageChoices is where an image keeps which providers were chosen in its bake.
const ImageChoices = "/ProgramData/machineadm/choices.json"

// ImageWrites is the record of an image.
const ImageWrites = `C:\ProgramData\machineadm\.pending`

// absent says that a path has nothing, so nothing was left beside it either.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func removeAt(dir *os.File, base string) error { return os.Remove(filepath.Join(dir.Name(), base)) }

// makeDir makes a directory and what is missing above it.
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
