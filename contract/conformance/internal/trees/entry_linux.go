package trees

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// system sets what os.FileInfo lacks. The change time cannot be set, so that it also shows a plugin that restores
// modification times.
func (e *Entry) system(info fs.FileInfo) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		e.UID, e.GID = int(st.Uid), int(st.Gid)
		e.touched = time.Unix(st.Ctim.Unix())
	}
}

// InodeOf distinguishes a file from another one with its name.
func InodeOf(info fs.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
	}
	return ""
}
