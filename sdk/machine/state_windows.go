package machine

import (
	"fmt"
	"os"
)

// checkPrivate leaves access lists to whoever made the directory: on Windows the host protects its state directory,
// and what is made below inherits that.
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

// syncDirectory has nothing to do: NTFS journals its directories.
func syncDirectory(string) error { return nil }
