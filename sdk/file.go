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
	"syscall"

	"github.com/machineadm/machineadm/contract/pluginv1"
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

	step string // see item
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

// claim records that the document owns the file. Sensitive is not part of its state.
func (s FileSpec) claim(m Machine) {
	if s.Part != nil {
		var value []string
		if s.Part.Content != nil {
			value = []string{string(s.Part.Content)}
		}
		m.Claim(pluginv1.FileClaim(s.Path, s.Part.Name), "", value...)
		return
	}
	if s.Absent {
		m.Claim(pluginv1.FileClaim(s.Path, ""), "")
		return
	}
	owner := ""
	if s.Owner != nil {
		owner = fmt.Sprintf("%d:%d", s.Owner.UID, s.Owner.GID)
	}
	m.Claim(pluginv1.FileClaim(s.Path, ""), "", string(s.Content), octal(s.Mode), owner)
}

// check refuses an incomplete specification.
func (s FileSpec) check() error {
	if s.Absent {
		return nil
	}
	if s.Mode&^modeBits != 0 {
		return fmt.Errorf("file %s: %w: its mode holds more than permission bits", s.Path, fs.ErrInvalid)
	}
	if s.Part != nil && s.Part.Name == "" {
		return fmt.Errorf("file %s: %w: its part has no name", s.Path, fs.ErrInvalid)
	}
	return nil
}

// wanted is the state that takes the place of have.
func (s FileSpec) wanted(have fileState) (fileState, error) {
	if !s.Absent && s.Mode == 0 && (!have.Exists || have.Mode.Perm() != 0) {
		return fileState{}, fmt.Errorf("file %s: %w: its mode is missing", s.Path, fs.ErrInvalid)
	}
	return s.fileState(), nil
}

func (s FileSpec) fileState() fileState {
	if s.Absent {
		return fileState{}
	}
	v := fileState{Exists: true, Content: bytes.Clone(s.Content), Mode: s.Mode, UID: -1, GID: -1}
	if s.Owner != nil {
		v.UID, v.GID = s.Owner.UID, s.Owner.GID
	}
	return v
}

// File returns the change that sets content, mode and owner of a file; nil when it matches. Links are followed. Missing
// directories are created with mode 0755.
//
// The diff is unified, or "content differs" where not everyone may read the old or the new file.
func File(m Machine, spec FileSpec) (*Change, error) {
	spec.claim(m)
	return fileChange(m, disk{m.FS}, spec)
}

// fileChanges returns the changes of the files that differ.
func fileChanges(m Machine, f files, specs []FileSpec) ([]*Change, error) {
	var changes []*Change
	for _, spec := range specs {
		change, err := fileChange(m, f, spec)
		if err != nil {
			return nil, err
		}
		if change != nil {
			changes = append(changes, change)
		}
	}
	return changes, nil
}

func fileChange(m Machine, f files, spec FileSpec) (*Change, error) {
	if spec.Absent {
		return absence(m, f, spec.Path)
	}
	if err := spec.check(); err != nil {
		return nil, err
	}
	have, err := f.read(spec.Path)
	if err != nil {
		return nil, err
	}
	want, err := spec.wanted(have)
	if err != nil {
		return nil, err
	}
	same := have.matches(want)
	if !same || len(spec.Outside) > 0 {
		err = f.permit(spec.Path, spec.Outside)
	}
	if same || err != nil {
		return nil, err
	}
	change := &Change{
		ID: "file:" + spec.Path, Summary: fileSummary(spec.Path, have, want),
		Diff: difference(spec.Path, have, want, spec.Sensitive),
	}
	return change.ofFiles(m, func(context.Context) error {
		now, err := f.read(spec.Path)
		if err != nil || now.matches(want) {
			return err
		}
		if err := f.permit(spec.Path, spec.Outside); err != nil { // links can have changed
			return err
		}
		return f.put(spec.Path, want)
	}), nil
}

func fileSummary(path string, have, want fileState) string {
	switch {
	case !have.Exists:
		return "create " + path
	case !bytes.Equal(have.Content, want.Content):
		return "change " + path
	default:
		return "change mode or owner of " + path
	}
}

// Absent returns the change that removes a file or a link; nil when there is none. Of a link only the link is removed. A
// directory is a Precondition.
func Absent(m Machine, path string) (*Change, error) {
	return File(m, FileSpec{Path: path, Absent: true})
}

func absence(m Machine, f files, path string) (*Change, error) {
	info, err := f.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read a file: %w", err)
	case info.Mode.IsDir():
		return nil, Precondition(path+" is a directory where no file may be", "move it away, then run again")
	}
	if err := f.permit(filepath.Dir(path), nil); err != nil {
		return nil, err
	}
	change := &Change{ID: "file:" + path, Summary: "remove " + path, Diff: path + ": removed\n"}
	change.ofFiles(m, func(context.Context) error { return f.put(path, fileState{}) })
	if info.Mode.IsRegular() {
		have, err := f.read(path)
		if err != nil {
			return nil, err
		}
		change.Diff = difference(path, have, fileState{}, false)
	}
	return change, nil
}

// Directory returns the change that creates a directory with this mode, and the missing ones above it with 0755; nil when it
// exists. One with another mode is a Precondition: its contents were created for that mode.
func Directory(m Machine, path string, mode fs.FileMode) (*Change, error) {
	if mode == 0 || mode&^fs.ModePerm != 0 {
		return nil, fmt.Errorf("directory %s: %w: its mode is missing or holds more than permission bits", path, fs.ErrInvalid)
	}
	m.Claim("directory:"+path, "", octal(mode))
	info, err := m.FS.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("query a directory: %w", err)
	case !info.Mode.IsDir():
		return nil, Precondition(path+" is not a directory", "move it away, then run again")
	case info.UID >= 0 && info.Mode.Perm() != mode:
		return nil, Precondition(fmt.Sprintf("the directory %s has the mode %s instead of %s",
			path, octal(info.Mode), octal(mode)), fmt.Sprintf("find out what else uses it, give it the mode %s, then run again", octal(mode)))
	default:
		return nil, nil
	}
	change := &Change{ID: "directory:" + path, Summary: "create the directory " + path, Diff: "mode " + octal(mode) + "\n"}
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
