package cli

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/journal"
	"github.com/machineadm/machineadm/internal/trust"
)

const (
	maxPath = 4096
	// A socket's name has 107 bytes, of which go-plugin and we take 60.
	maxSocketParent = 40
	// socketPrefix begins the names of the directories that sweep may remove.
	socketPrefix = ".sockets-"
	// runPrefix begins the names of temporary directories that sweepTemporary may remove; keptPrefix those of others.
	runPrefix, keptPrefix = "machineadm-run-", "machineadm-"
)

// temporary makes a directory that goes with the run. The lock on it ends with the process: see sweepTemporary.
func (p *place) temporary(longest int) (string, error) {
	for {
		dir, err := temporary(p.log, runPrefix, longest)
		if err != nil {
			return "", err
		}
		lock, err := journal.Acquire(ownerLock(dir))
		if err == nil && there(dir) {
			p.cleanup = append(p.cleanup, func() { removeOwned(dir, lock) })
			return dir, nil
		}
		if err == nil {
			err = lock.Release()
			_ = os.Remove(ownerLock(dir)) // where the lock is a new file
		}
		if err != nil && there(dir) && !errors.Is(err, journal.ErrLocked) {
			return "", stateExit(errors.Join(err, os.RemoveAll(dir)))
		}
		// A run that removes what others left was faster than the lock.
	}
}

// temporary makes a private directory below one whose path is not longer than that. A TMPDIR that cannot be used, or
// that others could replace, is passed over for the directories that the platform has beside it.
func temporary(log *slog.Logger, prefix string, longest int) (string, error) {
	var failures []error
	for _, parent := range append([]string{os.TempDir()}, moreTempDirs()...) {
		parent, err := checkTemporary(parent)
		var refused *trust.Error
		if errors.As(err, &refused) {
			log.Warn("a directory for temporary files is not trusted and not used: "+refused.Error(), "hint", refused.Remedy)
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
	return "", &exitError{
		code: report.ExitState, message: errors.Join(failures...).Error(),
		hint: "set TMPDIR to a directory that this user can write, with a short name",
	}
}

// socketDir is a private directory with a path short enough for a socket's name. That of a live run is found again by
// sweep if the run is killed.
func (p *place) socketDir() (string, error) {
	if p.reportPath == "" || p.root != "" || len(p.runDir) > maxSocketParent {
		return p.temporary(maxSocketParent)
	}
	dir, err := os.MkdirTemp(p.runDir, socketPrefix)
	if err != nil {
		return "", stateExit(errors.Join(err, p.reports.Begin()))
	}
	p.cleanup = append(p.cleanup, func() { _ = os.RemoveAll(dir) }) // only sockets were in it
	return dir, nil
}

// sweep removes the socket directories that a killed run left behind. Only the lock of the live machine says that they
// are nobody's: images have locks of their own, and may share a run directory.
func (p *place) sweep() error {
	if p.root != "" {
		return nil
	}
	left, err := filepath.Glob(filepath.Join(p.runDir, socketPrefix+"*"))
	if err != nil {
		return stateExit(err)
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return stateExit(err)
		}
	}
	return nil
}
