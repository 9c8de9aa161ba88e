package pluginv1

import (
	"fmt"
	"io"
	"io/fs"
	"log/slog"
)

// PlannedFile is the state in which the changes of a plan leave a file, a directory or a link. Formatted or logged it shows its path,
// never its content.
type PlannedFile struct {
	Path      string // absolute, without links
	Absent    bool
	Directory bool
	Link      string // the target of a link; empty for anything else
	Content   []byte // of a regular file
	Mode      fs.FileMode
	UID, GID  int
}

// Format shows the path.
func (f PlannedFile) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, f.Path) } // a fmt.State has no place for an error

// LogValue shows the path.
func (f PlannedFile) LogValue() slog.Value { return slog.StringValue(f.Path) }
