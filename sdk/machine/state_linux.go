package machine

import (
	"fmt"
	"os"
	"syscall"
)

// checkPrivate refuses a state directory that others can access, without changing its mode: that may be deliberate. An
// absent one is fs.ErrNotExist.
func checkPrivate(directory string) error {
	info, err := os.Lstat(directory)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("state directory %s: %w: it is a link or a file", directory, ErrUnsafe)
	case !ok || int(owner.Uid) != os.Geteuid():
		return fmt.Errorf("state directory %s: %w: it belongs to another user", directory, ErrUnsafe)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("state directory %s: %w: mode %04o; chmod 0700 %[1]s", directory, ErrUnsafe, info.Mode().Perm())
	}
	return nil
}

func syncDirectory(directory string) error {
	handle, err := os.Open(directory)
	if err != nil {
		return err
	}
	return closed(handle, handle.Sync())
}
