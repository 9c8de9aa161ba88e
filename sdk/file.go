package sdk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"

	"github.com/machineadm/machineadm/sdk/internal/files"
)

// FileSpec is the desired state of a file. Formatted or logged it shows its path, never its content.
type FileSpec struct {
	// Path is an absolute path of the target.
	Path string
	// Absent removes the file, as the function Absent does; only Part may be set as well.
	Absent bool
	// Content is the whole content.
	Content []byte
	// Mode has the permission bits, which are set whatever the umask. It must not be 0, unless the file has that already. On Windows
	// only SYSTEM, the Administrators and this user have access to a file that is closed to others (0600); any other inherits its access list.
	Mode fs.FileMode
	// Owner is the owner of the file; nil leaves it unmanaged: a file that is written belongs to the user of this process.
	// Windows: must be nil.
	Owner *Owner
	// Sensitive keeps the content out of the diff, even if Mode lets everyone read the file.
	Sensitive bool
	// Outside are directories and files of the target that the document must not change. A path that leads there, also by links of the
	// machine, is refused in Plan, with a final Precondition, and again before the file is written. No file is written below /usr.
	// Windows: ignored.
	Outside []string
	// Part is what the document owns of a file that it shares with others; nil means the whole file.
	Part *Part
}

// Part is a part of a file. Another document with a different content of the same part, or with the whole file, is a
// conflict; one with another part is not.
type Part struct {
	// Name identifies the part in the file, for example the name of a section or of the document. It must not be empty.
	Name string
	// Content is the desired content; nil means absent.
	Content []byte
}

// Owner is a numeric user and group.
type Owner struct{ UID, GID int }

// Format shows the path.
func (s FileSpec) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.Path) } // a fmt.State has no place for an error

// LogValue shows the path.
func (s FileSpec) LogValue() slog.Value { return slog.StringValue(s.Path) }

// spec returns the file as ready-made changes handle it.
func (s FileSpec) spec() files.Spec {
	out := files.Spec{Path: s.Path, Sensitive: s.Sensitive, Outside: s.Outside, Part: (*files.Part)(s.Part)}
	if s.Absent {
		return out
	}
	out.Want = files.State{Exists: true, Content: bytes.Clone(s.Content), Mode: s.Mode, UID: -1, GID: -1}
	if s.Owner != nil {
		out.Want.UID, out.Want.GID = s.Owner.UID, s.Owner.GID
	}
	return out
}

// File returns the change that sets content, mode and owner of a file; nil when it matches. Links are followed. Missing
// directories are created with mode 0755.
//
// The diff is unified, or "content differs" where not everyone may read the old or the new file.
func File(m Machine, spec FileSpec) (*Change, error) {
	file := spec.spec()
	file.Claim(m)
	change, err := file.Change(files.Disk{FS: m.FS})
	if change == nil || err != nil {
		return nil, err
	}
	return fileChange(m, change), nil
}

func fileChange(m Machine, c *files.Change) *Change {
	change := &Change{ID: c.ID, Summary: c.Summary, Diff: c.Diff}
	return change.ofFiles(m, func(context.Context) error { return c.Do() })
}

// Absent returns the change that removes a file or a link; nil when there is none. Of a link only the link is removed. A
// directory is a Precondition.
func Absent(m Machine, path string) (*Change, error) {
	return File(m, FileSpec{Path: path, Absent: true})
}

// Directory returns the change that creates a directory with this mode, and the missing ones above it with 0755; nil when it
// exists. One with another mode is a Precondition: its contents were created for that mode.
func Directory(m Machine, path string, mode fs.FileMode) (*Change, error) {
	if mode == 0 || mode&^fs.ModePerm != 0 {
		return nil, fmt.Errorf("directory %s: %w: its mode is missing or holds more than permission bits", path, fs.ErrInvalid)
	}
	m.Claim("directory:"+path, "", files.Octal(mode))
	info, err := m.FS.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("query a directory: %w", err)
	case !info.Mode.IsDir():
		return nil, Precondition(path+" is not a directory", "move it away, then run again")
	case info.UID >= 0 && info.Mode.Perm() != mode:
		return nil, Precondition(fmt.Sprintf("the directory %s has the mode %s instead of %s",
			path, files.Octal(info.Mode), files.Octal(mode)), fmt.Sprintf("find out what else uses it, give it the mode %s, then run again", files.Octal(mode)))
	default:
		return nil, nil
	}
	change := &Change{ID: "directory:" + path, Summary: "create the directory " + path, Diff: "mode " + files.Octal(mode) + "\n"}
	return change.ofFiles(m, func(context.Context) error {
		if err := m.FS.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return m.FS.MkdirAll(path, mode)
	}), nil
}

// AbsentDirectory returns the change that removes an empty directory, as other changes of the plan leave it.
func AbsentDirectory(m Machine, path string) *Change {
	change := &Change{ID: "directory:" + path, Summary: "remove the directory " + path, Diff: path + ": removed\n"}
	return change.ofFiles(m, func(context.Context) error { return m.FS.Remove(path) })
}
