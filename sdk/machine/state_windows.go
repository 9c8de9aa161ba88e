package machine

import (
	"fmt"
	"os"
)

// checkPrivate checks no access lists: the host protects its state directory, and directories below inherit that.
func checkPrivate(directory string) error {
	info, err := os.Lstat(directory)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("state directory %s: %w: it is a link or a file", directory, ErrUnsafe)
	}
	return nil
}

// syncDirectory does nothing: NTFS journals its directories.
func syncDirectory(string) error { return nil }
