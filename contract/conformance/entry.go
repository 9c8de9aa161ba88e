package conformance

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"time"
)

// entry is what is compared of a file.
type entry struct {
	mode     fs.FileMode // with the type
	uid, gid int         // -1 where there are none
	size     int64
	content  [sha256.Size]byte // of a regular file
	link     string            // of a link
	written  time.Time         // modification time
	touched  time.Time         // change time where there is one
}

// aspects select what is compared of two trees beside types, contents and links.
type aspects struct{ modes, owners, times bool }

const modeBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// special are the bits of a mode above the permissions, as chmod(2) writes them.
func special() map[fs.FileMode]uint64 {
	return map[fs.FileMode]uint64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000}
}

// modeOf converts the mode of chmod(2), octalOf converts it back.
func modeOf(octal uint64) fs.FileMode {
	mode := fs.FileMode(octal & 0o777)
	for bit, is := range special() {
		if octal&is != 0 {
			mode |= bit
		}
	}
	return mode
}

func octalOf(mode fs.FileMode) uint64 {
	octal := uint64(mode.Perm())
	for bit, is := range special() {
		if mode&bit != 0 {
			octal |= is
		}
	}
	return octal
}

// differs describes the first difference of got, or returns "".
func (e entry) differs(got entry, a aspects) string {
	const bits = modeBits
	switch {
	case e.mode.Type() != got.mode.Type():
		return fmt.Sprintf("is %s instead of %s", kindOf(got.mode), kindOf(e.mode))
	case e.content != got.content:
		return fmt.Sprintf("has other content (%d bytes instead of %d)", got.size, e.size)
	case e.link != got.link:
		return fmt.Sprintf("leads to %q instead of %q", got.link, e.link)
	case a.modes && e.mode.Type() != fs.ModeSymlink && e.mode&bits != got.mode&bits:
		return fmt.Sprintf("has the mode %v instead of %v", got.mode&bits, e.mode&bits)
	case a.owners && (e.uid != got.uid || e.gid != got.gid):
		return fmt.Sprintf("belongs to %d:%d instead of %d:%d", got.uid, got.gid, e.uid, e.gid)
	case a.times && (!e.written.Equal(got.written) || !e.touched.Equal(got.touched)):
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

// file reports whether the entry is a regular file.
func (e entry) file() bool { return !e.written.IsZero() && e.mode.IsRegular() }
