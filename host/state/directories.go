package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// private makes the state directory, or makes sure that nobody else can look into the one that is there.
func private(dir string) error {
	info, err := directory(dir)
	if err != nil {
		return err
	}
	return tighten(dir, info)
}

// inner is private for a directory inside the state directory.
func inner(dir string) error {
	info, err := directory(dir)
	if err != nil {
		return err
	}
	return tightenInner(dir, info)
}

// directory makes dir if it is missing. A link in its place is refused: what it leads to may be anybody's.
func directory(dir string) (fs.FileInfo, error) {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		info, err = os.Lstat(dir)
	}
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("%s is a link, and must be a directory itself: remove it", dir)
	case !info.IsDir():
		return nil, fmt.Errorf("%s is not a directory: remove it", dir)
	}
	return info, nil
}

// MakeRunDir makes the run directory, and what is missing above it, for everyone to look into, whatever the umask: the
// report in it is for everyone. A directory that is there is left as it is.
func MakeRunDir(dir string) error { return stateError(public(dir)) }

func public(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := public(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) { // made by another process meanwhile, or a link that leads nowhere
			_, err = os.Stat(dir)
		}
		return err
	}
	return os.Chmod(dir, 0o755)
}
