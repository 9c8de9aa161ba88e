package machine

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

func (f *FS) rehearse(planned []PlannedFile) *FS {
	r := &rehearsal{files: map[string]PlannedFile{}, given: map[string]PlannedFile{}}
	for _, p := range planned {
		r.files[p.Path], r.given[p.Path] = p, p
	}
	return &FS{f.root, f.handle, f.before, r}
}

// rehearsePut records a file or a link, after the checks of a write of it. The result of check is about the directory in which the
// write replaces or creates an entry.
func (f *FS) rehearsePut(name string, toEnd bool, p PlannedFile, check func(dir *os.File, base string) error) error {
	if err := checkName(name); err != nil {
		return err
	}
	at, err := f.resolve(name, toEnd, f.link)
	if err != nil {
		return err
	}
	have, err := f.rehearsal.at(at)
	switch {
	case err != nil && !errors.Is(err, unix.ENOENT):
		return err
	case have != nil && have.Directory:
		return unix.EISDIR
	case have != nil && f.differs(*have) && !equal(*have, p):
		return ErrTwice
	}
	dir, base, err := f.openParent(f.now(name, at, toEnd), toEnd)
	if err == nil && dir != nil { // otherwise the directory is to be created
		err = closed(dir, check(dir, base))
	}
	if err != nil {
		return err
	}
	p.Path = at
	return f.record(p, parentMode)
}

// now is the path by which the machine reaches a path without links: the name, unless planned links lead elsewhere.
func (f *FS) now(name, at string, toEnd bool) string {
	if now, err := f.resolve(name, toEnd, f.linkNow); err != nil || now != at {
		return at
	}
	return name
}

// record keeps what a change leaves, and the directories that it creates above, with this mode.
func (f *FS) record(p PlannedFile, above fs.FileMode) error {
	if parent := path.Dir(p.Path); !p.Absent && parent != "/" {
		if _, err := f.lstat(parent); isAbsent(err) {
			if err := f.recordDirectory(parent, above); err != nil {
				return err
			}
		} else if err != nil {
			return err
		}
	}
	f.rehearsal.files[p.Path] = p
	return nil
}

// rehearseDirectory records a directory and those above it that are missing.
func (f *FS) rehearseDirectory(name string, mode fs.FileMode) error {
	at, err := f.resolve(name, true, f.link)
	if err != nil {
		return err
	}
	switch info, err := f.stat(name); {
	case err == nil && info.Mode.IsDir():
		return nil
	case err == nil:
		return unix.ENOTDIR
	case !isAbsent(err):
		return err
	}
	if err := f.createDirectory(f.now(name, at, true), mode); err != nil {
		return err
	}
	return f.recordDirectory(at, mode)
}

func (f *FS) recordDirectory(at string, mode fs.FileMode) error {
	return f.record(PlannedFile{Path: at, Directory: true, Mode: mode, UID: os.Geteuid(), GID: os.Getegid()}, mode)
}

// rehearseRemoval records that a file, a link or an empty directory is gone.
func (f *FS) rehearseRemoval(name string, check func(dir *os.File, base string) error) error {
	info, err := f.lstat(name)
	if err != nil {
		return err
	}
	if info.Mode.IsDir() {
		if names, err := f.readDir(name); err != nil || len(names) > 0 {
			return cmp.Or(err, error(unix.ENOTEMPTY))
		}
	}
	at, err := f.resolve(name, false, f.link)
	if err != nil {
		return err
	}
	if _, planned := f.rehearsal.files[at]; !planned {
		dir, base, err := f.safeParent(f.now(name, at, false))
		if err != nil {
			return err
		}
		if err := closed(dir, check(dir, base)); err != nil {
			return err
		}
	}
	f.rehearsal.files[at] = PlannedFile{Path: at, Absent: true}
	return nil
}

// rehearseAttributes records a file or directory with another mode or owner.
func (f *FS) rehearseAttributes(name string, change func(*PlannedFile)) error {
	at, err := f.resolve(name, false, f.link)
	if err != nil {
		return err
	}
	p, err := f.snapshot(at)
	switch {
	case err != nil:
		return err
	case p.Absent:
		return fs.ErrNotExist
	case p.Link != "":
		return ErrNotRegular
	}
	change(&p)
	f.rehearsal.files[at] = p
	return nil
}

// snapshot returns what is at a path without links, as it is planned.
func (f *FS) snapshot(at string) (PlannedFile, error) {
	if p, ok := f.rehearsal.files[at]; ok {
		return p, nil
	}
	return f.snapshotNow(at)
}

// snapshotNow returns what is at a path without links.
func (f *FS) snapshotNow(at string) (PlannedFile, error) {
	info, err := f.lstatNow(at)
	p := PlannedFile{Path: at, Mode: info.Mode &^ fs.ModeType, UID: info.UID, GID: info.GID}
	switch {
	case isAbsent(err):
		return PlannedFile{Path: at, Absent: true}, nil
	case err != nil:
	case info.Mode.IsDir():
		p.Directory = true
	case info.Mode.Type() == fs.ModeSymlink:
		p.Mode = 0
		p.Link, err = f.readlinkNow(at)
	case info.Mode.IsRegular():
		var file *os.File
		if file, err = f.openNow(at); err == nil {
			p.Content, err = readAll(file, MaxFileBytes)
		}
	default:
		err = ErrNotRegular
	}
	return p, err
}

// differs reports whether a planned file differs from what was there before this plan.
func (f *FS) differs(p PlannedFile) bool {
	was, given := f.rehearsal.given[p.Path]
	if !given {
		var err error
		if was, err = f.snapshotNow(p.Path); err != nil {
			return true
		}
	}
	return !equal(was, p)
}

// equal compares what is at one path.
func equal(a, b PlannedFile) bool {
	same := a.Absent == b.Absent && a.Directory == b.Directory && a.Link == b.Link && bytes.Equal(a.Content, b.Content)
	return same && (a.Link != "" || a.Mode == b.Mode && a.UID == b.UID && a.GID == b.GID)
}
