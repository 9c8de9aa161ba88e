package machine

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/state"
	"github.com/machineadm/machineadm/internal/trust"
)

// MaxPath is the length of the longest path of a directory, in bytes.
const MaxPath = 4096

const (
	// runPrefix starts the names of temporary directories that RemoveStale may remove.
	runPrefix = "machineadm-run-"
	// KeptPrefix starts the names of others.
	KeptPrefix = "machineadm-"
)

// Temporary creates a directory that remove removes. Its lock ends with the process; see removeStale.
func Temporary(log *slog.Logger, longest int) (dir string, remove func(), err error) {
	for {
		dir, err := PrivateDir(log, runPrefix, longest)
		if err != nil {
			return "", nil, err
		}
		lock, err := state.Acquire(ownerLock(dir))
		if err == nil && dirExists(dir) {
			return dir, func() { removeOwned(dir, lock) }, nil
		}
		if err == nil {
			err = lock.Release()
			_ = os.Remove(ownerLock(dir)) // where the lock is a new file
		}
		if err != nil && dirExists(dir) && !errors.Is(err, state.ErrLocked) {
			return "", nil, errors.Join(err, os.RemoveAll(dir))
		}
		// Another run removed the directory before it was locked.
	}
}

// PrivateDir creates a private directory below a parent whose path has at most longest bytes: TMPDIR or, if it is unusable or
// untrusted, an alternative of the platform.
func PrivateDir(log *slog.Logger, prefix string, longest int) (string, error) {
	var failures []error
	for _, parent := range append([]string{os.TempDir()}, moreTempDirs()...) {
		parent, err := checkTemporary(parent)
		var refused *trust.Error
		if errors.As(err, &refused) {
			log.Warn("a directory for temporary files is untrusted and not used: "+refused.Error(), "hint", refused.Remedy)
		}
		if err == nil && (len(parent) > longest || !filepath.IsAbs(parent)) {
			continue
		}
		dir := ""
		if err == nil {
			dir, err = os.MkdirTemp(parent, prefix)
		}
		if err == nil {
			return dir, nil
		}
		failures = append(failures, err)
	}
	return "", &report.Error{
		Code: report.CodeState, Message: errors.Join(failures...).Error(),
		Hint: "set TMPDIR to a directory that this user can write, with a short name",
	}
}

// removeOwned removes a temporary directory of this run.
func removeOwned(dir string, lock *state.Lock) {
	_ = os.RemoveAll(dir)
	_ = lock.Release()
	_ = os.Remove(ownerLock(dir)) // on Windows a separate file
}

// dirExists reports whether dir is a directory: the lock of a deleted directory can be a new file in its place.
func dirExists(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir()
}

// RemoveStale removes the temporary directories of this user that killed runs left.
func RemoveStale(log *slog.Logger) {
	for _, parent := range append([]string{os.TempDir()}, moreTempDirs()...) {
		parent, err := checkTemporary(parent)
		if err != nil {
			continue // not used by any run
		}
		if err := removeStale(parent); err != nil {
			log.Warn("directories of an interrupted run cannot be removed", "error", err)
		}
	}
}

// removeStale removes the unlocked temporary directories of this user below parent, which killed runs left.
func removeStale(parent string) error {
	root, err := os.OpenRoot(parent)
	if err != nil {
		return nil // no directory for temporary files
	}
	defer func() { _ = root.Close() }() // opened for reading only
	found, err := fs.Glob(root.FS(), runPrefix+"*")
	if err != nil {
		return err
	}
	for _, name := range found {
		dir := filepath.Join(parent, name)
		info, err := root.Lstat(name)
		if err != nil || !info.IsDir() || !mine(info) || state.Held(ownerLock(dir)) {
			continue
		}
		lock, err := state.Acquire(ownerLock(dir))
		if err != nil {
			continue // in use, or removed
		}
		err = root.RemoveAll(name)
		_ = lock.Release() // the directory is removed
		_ = os.Remove(ownerLock(dir))
		if err != nil {
			return err
		}
	}
	return nil
}
