//go:build unix

package state

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// noFollow refuses a link in place of the lock file, which would be emptied.
const noFollow = unix.O_NOFOLLOW

func tryLock(file *os.File, kind lockKind) error {
	how := unix.LOCK_EX
	if kind == shared {
		how = unix.LOCK_SH
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
