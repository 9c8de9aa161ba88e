package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// makePrivate creates the state directory, or closes an existing one to other users.
func makePrivate(dir string) error {
	if err := makeDirectory(dir); err != nil {
		return err
	}
	return restrict(dir)
}

// makeInner creates a directory in the state directory, with mode 0700. On Windows it inherits the access list.
func makeInner(dir string) error {
	if err := makeDirectory(dir); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	return os.Chmod(dir, 0o700)
}

func makeDirectory(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return checkDirectory(dir)
}

// checkDirectory refuses a link, whose target may belong to another user.
func checkDirectory(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s is a link, and must be a directory itself: remove it", dir)
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory: remove it", dir)
	}
	return nil
}

// MakeRunDir creates the run directory and its parents with mode 0755, whatever the umask, because every user may read the
// report. An existing directory keeps its mode.
func MakeRunDir(dir string) error { return stateError(makePublic(dir)) }

func makePublic(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := makePublic(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) { // created by another process, or a dangling link
			_, err = os.Stat(dir)
		}
		return err
	}
	return os.Chmod(dir, 0o755)
}
