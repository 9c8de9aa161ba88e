package state

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// noFollow has no counterpart: making a link needs a privilege.
const noFollow = 0

// tryLock locks a byte far behind the text, so that a reader can still see who holds the lock.
func tryLock(file *os.File, kind lockKind) error {
	region := &windows.Overlapped{OffsetHigh: 1}
	how := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if kind == exclusive {
		how |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(file.Fd()), how, 0, 1, 0, region)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return ErrLocked
	}
	return err
}
