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

// Write creates dir with the files: it writes to a temporary sibling and renames it, so that an error leaves nothing. An
// existing dir, or a parent in which it cannot be created, is a *PathError.
func Write(dir string, files []File) (err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := checkAbsent(dir); err != nil {
		return err
	}
	scratch := filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+"."+strings.ToLower(rand.Text()[:8]))
	if err := os.Mkdir(scratch, 0o755); err != nil { //nolint:gosec // sources are public
		if inner, ok := errors.AsType[*fs.PathError](err); ok { // it names the temporary directory
			err = inner.Err
		}
		return &PathError{filepath.Dir(dir), "does not allow a new directory: " + err.Error()}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(scratch))
		}
	}()
	for _, f := range files {
		path := filepath.Join(scratch, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // likewise
			return fmt.Errorf("create a directory of the skeleton: %w", err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil { //nolint:gosec // likewise
			return fmt.Errorf("write the skeleton: %w", err)
		}
	}
	if err := os.Rename(scratch, dir); err != nil {
		return fmt.Errorf("rename the skeleton: %w", err)
	}
	return nil
}

// PathError reports a directory that cannot hold a skeleton.
type PathError struct{ Path, Problem string }

// Error returns the path and the problem.
func (e *PathError) Error() string { return e.Path + " " + e.Problem }

func checkAbsent(dir string) error {
	if _, err := os.Lstat(dir); err == nil {
		return &PathError{dir, "already exists and is not overwritten"}
	} else if !errors.Is(err, fs.ErrNotExist) && !notDirectory(filepath.Dir(dir)) {
		return fmt.Errorf("stat the skeleton's directory: %w", err)
	}
	if notDirectory(filepath.Dir(dir)) {
		return &PathError{filepath.Dir(dir), "is not a directory"}
	}
	return nil
}

func notDirectory(path string) bool {
	info, err := os.Stat(path)
	return err != nil || !info.IsDir()
}
