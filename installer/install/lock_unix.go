//go:build unix

package install

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/contract/report"
)

// lock locks a directory until it is closed. It does not wait.
func lock(dir *os.File) error {
	err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB) //nolint:gosec // a descriptor fits an int
	if errors.Is(err, unix.EWOULDBLOCK) {
		return &Error{
			Code: report.ExitLocked, Problem: "another process installs into " + dir.Name(),
			Remedy: "wait until it has ended, and run again",
		}
	}
	return err
}
