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

// tighten judges a directory and closes it to others. One that holds other things than ours is refused instead: a
// mistyped --state-dir must not lock everyone out of /tmp.
func tighten(dir string, info fs.FileInfo) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, and this is user %d: %w", dir, stat.Uid, os.Geteuid(), fs.ErrPermission)
	}
	mode := info.Mode().Perm()
	if mode&0o077 == 0 {
		return nil
	}
	other, err := strange(dir)
	if err != nil {
		return err
	}
	if other != "" {
		return fmt.Errorf("%s is open to other users (mode %04o) and holds %q, which is none of machineadm's: "+
			"give it a directory of its own", dir, mode, other)
	}
	return os.Chmod(dir, 0o700)
}

func tightenInner(dir string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	return os.Chmod(dir, 0o700)
}

// strange names something in dir that is not machineadm's, or nothing. State and run directory may be one, or one
// inside the other.
func strange(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	ours := append(stateNames(), "run", "lock", ReportFile, DetailsFile, earlierFile)
	for _, e := range entries {
		if !slices.Contains(ours, e.Name()) && !atomicfile.Reserved(e.Name()) {
			return e.Name(), nil
		}
	}
	return "", nil
}
