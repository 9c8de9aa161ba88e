package state

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// noFollow has no counterpart: creating a link requires a privilege.
const noFollow = 0

// tryLock takes the lock, or returns ErrLocked. Several processes can hold a shared lock. It locks a byte beyond the text, so
// that others can still read the process ID.
func tryLock(file *os.File, exclusive bool) error {
	region := &windows.Overlapped{OffsetHigh: 1}
	how := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if exclusive {
		how |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(file.Fd()), how, 0, 1, 0, region)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return ErrLocked
	}
	return err
}
