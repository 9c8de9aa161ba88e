package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// beginningBytes cover the notes that linkers write (Go's and GNU's build ID), and of a script most or all.
const beginningBytes = 8 << 10

func identify(file *os.File) (identity, error) {
	var s unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &s); err != nil {
		return identity{}, fmt.Errorf("stat: %w", err)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(file, 0, beginningBytes)); err != nil {
		return identity{}, err
	}
	return identity{
		Device: s.Dev, Inode: s.Ino, Size: s.Size, Modified: s.Mtim.Nano(), Changed: s.Ctim.Nano(),
		Beginning: hex.EncodeToString(sum.Sum(nil)),
	}, nil
}
