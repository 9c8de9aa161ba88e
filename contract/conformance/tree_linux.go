package conformance

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// system fills what os.FileInfo does not say. The change time cannot be set back, so that it also tells of a plugin that
// restores modification times.
func (e *entry) system(info fs.FileInfo) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		e.uid, e.gid = int(st.Uid), int(st.Gid)
		e.touched = time.Unix(st.Ctim.Unix())
	}
}

// inodeOf tells a file from another one that took its name.
func inodeOf(info fs.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
	}
	return ""
}
