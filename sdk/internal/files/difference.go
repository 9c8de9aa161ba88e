package files

import (
	"bytes"
	"fmt"
	"io/fs"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
)

const (
	// ContentDiffers is a diff that shows no content.
	ContentDiffers = "content differs\n"
	// maxDiffBytes limits the files whose lines are compared: a larger diff is not readable.
	maxDiffBytes = 256 << 10
)

// Difference describes a change of a file: mode and owner, then a unified diff. The diff is left out where one side is not
// readable by everyone, not text or too large.
func Difference(path string, have, want State, sensitive bool) string {
	text := ""
	if have.Exists && want.Exists {
		if have.otherMode(want) {
			text += fmt.Sprintf("mode %s -> %s\n", Octal(have.Mode), Octal(want.Mode))
		}
		if have.otherOwner(want) {
			text += fmt.Sprintf("owner %d:%d -> %d:%d\n", have.UID, have.GID, want.UID, want.GID)
		}
		if bytes.Equal(have.Content, want.Content) {
			return text
		}
	}
	if sensitive || !have.showable() || !want.showable() {
		return text + ContentDiffers
	}
	from, to := "a"+path, "b"+path
	if !have.Exists {
		from = "/dev/null"
	}
	if !want.Exists {
		to = "/dev/null"
	}
	return text + udiff.Unified(from, to, string(have.Content), string(want.Content))
}

func (v State) showable() bool {
	if !v.Exists {
		return true
	}
	return v.Mode&0o004 != 0 && len(v.Content) <= maxDiffBytes &&
		utf8.Valid(v.Content) && !bytes.ContainsRune(v.Content, 0)
}

// Octal formats a mode for chmod(1).
func Octal(mode fs.FileMode) string {
	bits := mode.Perm()
	for _, special := range []struct{ flag, bit fs.FileMode }{
		{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000},
	} {
		if mode&special.flag != 0 {
			bits |= special.bit
		}
	}
	return fmt.Sprintf("%04o", uint32(bits))
}
