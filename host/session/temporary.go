package session

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/host/machine"
)

const (
	// A socket path has at most 107 bytes, of which go-plugin and machineadm use 60.
	maxSocketParent = 40
	// socketPrefix starts the names of socket directories, which removeSockets removes.
	socketPrefix = ".sockets-"
)

// temporary creates a directory that is removed at the end of the run, below a parent whose path has at most longest bytes.
func (s *Session) temporary(longest int) (string, error) {
	dir, remove, err := machine.Temporary(s.o.Log, longest)
	if err != nil {
		return "", stateError(err)
	}
	s.cleanup = append(s.cleanup, remove)
	return dir, nil
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
