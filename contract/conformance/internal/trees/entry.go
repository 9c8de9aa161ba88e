package trees

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"time"
)

// Entry is what is compared of a file.
type Entry struct {
	Mode     fs.FileMode // with the type
	UID, GID int         // -1 where there are none
	Size     int64
	Content  [sha256.Size]byte // of a regular file
	Link     string            // of a link
	written  time.Time         // modification time
	touched  time.Time         // change time where there is one
}

// Aspects select what is compared of two trees beside types, contents and links.
type Aspects struct{ Modes, Owners, Times bool }

// ModeBits are the permissions, setuid, setgid and the sticky bit.
const ModeBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// special are the bits of a mode above the permissions, as chmod(2) writes them.
func special() map[fs.FileMode]uint64 {
	return map[fs.FileMode]uint64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000}
}

// ModeOf converts the mode of chmod(2).
func ModeOf(octal uint64) fs.FileMode {
	mode := fs.FileMode(octal & 0o777)
	for bit, is := range special() {
		if octal&is != 0 {
			mode |= bit
		}
	}
	return mode
}

// OctalOf converts a mode to that of chmod(2).
func OctalOf(mode fs.FileMode) uint64 {
	octal := uint64(mode.Perm())
	for bit, is := range special() {
		if mode&bit != 0 {
			octal |= is
		}
	}
	return octal
}

// Differs describes the first difference of got, or returns "".
func (e Entry) Differs(got Entry, a Aspects) string {
	const bits = ModeBits
	switch {
	case e.Mode.Type() != got.Mode.Type():
		return fmt.Sprintf("is %s instead of %s", kindOf(got.Mode), kindOf(e.Mode))
	case e.Content != got.Content:
		return fmt.Sprintf("has other content (%d bytes instead of %d)", got.Size, e.Size)
	case e.Link != got.Link:
		return fmt.Sprintf("leads to %q instead of %q", got.Link, e.Link)
	case a.Modes && e.Mode.Type() != fs.ModeSymlink && e.Mode&bits != got.Mode&bits:
		return fmt.Sprintf("has the mode %v instead of %v", got.Mode&bits, e.Mode&bits)
	case a.Owners && (e.UID != got.UID || e.GID != got.GID):
		return fmt.Sprintf("belongs to %d:%d instead of %d:%d", got.UID, got.GID, e.UID, e.GID)
	case a.Times && (!e.written.Equal(got.written) || !e.touched.Equal(got.touched)):
		return "was touched: its times are others"
	}
	return ""
}

func kindOf(mode fs.FileMode) string {
	switch mode.Type() {
	case 0:
		return "a file"
	case fs.ModeDir:
		return "a directory"
	case fs.ModeSymlink:
		return "a link"
	default:
		return "a special file"
	}
}

// File reports whether the entry is a regular file.
func (e Entry) File() bool { return !e.written.IsZero() && e.Mode.IsRegular() }
