//go:build unix

package state

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// noFollow refuses a link in place of the lock file, whose target would be truncated.
const noFollow = unix.O_NOFOLLOW

// tryLock takes the lock, or returns ErrLocked. Several processes can hold a shared lock.
func tryLock(file *os.File, exclusive bool) error {
	how := unix.LOCK_SH
	if exclusive {
		how = unix.LOCK_EX
	}
	for {
		err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB) //nolint:gosec // a descriptor fits an int
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrLocked
		}
		return err
	}
}
