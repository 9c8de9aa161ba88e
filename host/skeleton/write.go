package skeleton

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Write puts the files into a new directory. It is made beside and renamed, so that after an error there is nothing of
// it. What is there already is never written to: that is a PlaceError, and so is a directory in which none can be made.
func Write(dir string, files []File) (err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := free(dir); err != nil {
		return err
	}
	scratch := filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+"."+strings.ToLower(rand.Text()[:8]))
	if err := os.Mkdir(scratch, 0o755); err != nil { //nolint:gosec // sources, for everyone to read
		problem := err.Error()
		if inner, ok := errors.AsType[*fs.PathError](err); ok { // which names the scratch directory
			problem = inner.Err.Error()
		}
		return &PlaceError{filepath.Dir(dir), "takes no new directory: " + problem}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(scratch))
		}
	}()
	for _, f := range files {
		path := filepath.Join(scratch, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // likewise
			return fmt.Errorf("make a directory of the skeleton: %w", err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil { //nolint:gosec // likewise
			return fmt.Errorf("write the skeleton: %w", err)
		}
	}
	if err := os.Rename(scratch, dir); err != nil {
		return fmt.Errorf("put the skeleton in its place: %w", err)
	}
	return nil
}

// PlaceError says why a skeleton cannot be where it was asked for.
type PlaceError struct{ Path, Problem string }

// Error names the path.
func (e *PlaceError) Error() string { return e.Path + " " + e.Problem }

func free(dir string) error {
	if _, err := os.Lstat(dir); err == nil {
		return &PlaceError{dir, "is there already, and nothing is written over"}
	} else if !errors.Is(err, fs.ErrNotExist) && !isNoDirectory(filepath.Dir(dir)) {
		return fmt.Errorf("look for the skeleton's directory: %w", err)
	}
	if isNoDirectory(filepath.Dir(dir)) {
		return &PlaceError{filepath.Dir(dir), "is no directory: a skeleton is a new directory in one that is there"}
	}
	return nil
}

func isNoDirectory(path string) bool {
	info, err := os.Stat(path)
	return err != nil || !info.IsDir()
}
