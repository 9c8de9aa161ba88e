package session

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/state"
	"github.com/machineadm/machineadm/internal/trust"
)

const (
	maxPath = 4096
	// A socket path has at most 107 bytes, of which go-plugin and machineadm use 60.
	maxSocketParent = 40
	// socketPrefix starts the names of socket directories, which removeSockets removes.
	socketPrefix = ".sockets-"
	// runPrefix starts the names of temporary directories that removeStale may remove; keptPrefix starts the names of others.
	runPrefix, keptPrefix = "machineadm-run-", "machineadm-"
)

// temporary creates a directory that is removed at the end of the run. Its lock ends with the process; see removeStale.
func (s *Session) temporary(longest int) (string, error) {
	for {
		dir, err := temporary(s.o.Log, runPrefix, longest)
		if err != nil {
			return "", err
		}
		lock, err := state.Acquire(ownerLock(dir))
		if err == nil && dirExists(dir) {
			s.cleanup = append(s.cleanup, func() { removeOwned(dir, lock) })
			return dir, nil
		}
		if err == nil {
			err = lock.Release()
			_ = os.Remove(ownerLock(dir)) // where the lock is a new file
		}
		if err != nil && dirExists(dir) && !errors.Is(err, state.ErrLocked) {
			return "", stateError(errors.Join(err, os.RemoveAll(dir)))
		}
		// Another run removed the directory before it was locked.
	}
}

// temporary creates a private directory below a parent whose path has at most longest bytes: TMPDIR or, if it is unusable or
// untrusted, an alternative of the platform.
func temporary(log *slog.Logger, prefix string, longest int) (string, error) {
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

// socketDir creates a private directory whose path is short enough for a socket. After a killed run on the live machine,
// removeSockets removes it.
func (s *Session) socketDir() (string, error) {
	if s.record.path == "" || s.root != "" || len(s.runDir) > maxSocketParent {
		return s.temporary(maxSocketParent)
	}
	dir, err := os.MkdirTemp(s.runDir, socketPrefix)
	if err != nil {
		return "", stateError(errors.Join(err, s.record.reports.Begin()))
	}
	s.cleanup = append(s.cleanup, func() { _ = os.RemoveAll(dir) }) // contains only sockets
	return dir, nil
}

// removeSockets removes the socket directories of killed runs. It requires the lock of the live machine, because runs on
// images have their own locks and can share a run directory.
func (s *Session) removeSockets() error {
	if s.root != "" {
		return nil
	}
	left, err := filepath.Glob(filepath.Join(s.runDir, socketPrefix+"*"))
	if err != nil {
		return stateError(err)
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return stateError(err)
		}
	}
	return nil
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
