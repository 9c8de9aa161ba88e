//go:build unix

package state

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/machineadm/machineadm/internal/atomicfile"
)

// restrict closes a directory of this user to others. It refuses one with files of other programs, so that a mistyped
// --state-dir does not close /tmp.
func restrict(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, and this is user %d: %w", dir, stat.Uid, os.Geteuid(), fs.ErrPermission)
	}
	mode := info.Mode().Perm()
	if mode&0o077 == 0 {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	own := append(stateNames(), "run", "lock", ReportFile, DetailsFile, earlierFile) // the run directory may be the same, or in it
	for _, e := range entries {
		if !slices.Contains(own, e.Name()) && !atomicfile.Reserved(e.Name()) {
			return fmt.Errorf("%s is open to other users (mode %04o) and contains %q of another program: choose a directory "+
				"for machineadm alone", dir, mode, e.Name())
		}
	}
	return os.Chmod(dir, 0o700)
}
