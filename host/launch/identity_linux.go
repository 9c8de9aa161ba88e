package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// identify says which file this is, with which content. known is false where that cannot be told.
func identify(file *os.File) (id identity, known bool, err error) {
	var s unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &s); err != nil {
		return id, false, fmt.Errorf("look at the file: %w", err)
	}
	id = identity{Device: s.Dev, Inode: s.Ino, Size: s.Size, Modified: s.Mtim.Nano(), Changed: s.Ctim.Nano()}
	id.Beginning, err = beginning(file)
	return id, err == nil, err
}

// beginningBytes hold the notes that linkers write (Go's build ID, GNU's), and of a script most or all.
const beginningBytes = 8 << 10

// beginning is the digest of the first bytes of a file.
func beginning(file *os.File) (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(file, 0, beginningBytes)); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
