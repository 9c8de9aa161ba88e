//go:build unix

package install

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/contract/report"
)

// lockFile exists during an installation or a copy. Only this user can open it, because a process that can open it can hold
// the lock.
const lockFile = ".lock"

// lock locks a directory until unlock. It does not wait.
func lock(dir *os.Root) (unlock func(), err error) {
	for {
		file, err := dir.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) //nolint:gosec // a descriptor fits an int
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = &Error{
				Code: report.ExitLocked, Problem: "another process installs into " + dir.Name(),
				Remedy: "wait until it has ended, and run again",
			}
		}
		there := false
		if err == nil {
			there, err = names(dir, file)
		}
		if there {
			return func() {
				_ = dir.Remove(lockFile) // the next run uses it
				_ = file.Close()         // nothing was written
			}, nil
		}
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
	}
}

// names reports whether the lock file in a directory is still the opened one: the process that held the lock has removed it.
func names(dir *os.Root, opened *os.File) (bool, error) {
	now, err := dir.Lstat(lockFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	info, err := opened.Stat()
	return err == nil && os.SameFile(now, info), err
}
