package machine

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// planned returns the planned file at name, nil when there is none, and the path at which the machine has what remains: name itself as
// long as nothing is planned, so that a lone plan pays nothing.
func (f *FS) planned(name string, follow bool) (*PlannedFile, string, error) {
	if err := checkName(name); err != nil || f.rehearsal == nil || len(f.rehearsal.files) == 0 {
		return nil, name, err
	}
	at, err := f.resolve(name, follow, f.link)
	if err != nil {
		return nil, at, err
	}
	p, err := f.rehearsal.at(at)
	return p, at, err
}

// at returns the planned file at a path without links, nil when there is none.
func (r *rehearsal) at(name string) (*PlannedFile, error) {
	for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
		switch above, ok := r.files[dir]; {
		case ok && above.Absent:
			return nil, unix.ENOENT
		case ok && !above.Directory:
			return nil, unix.ENOTDIR
		}
	}
	p, ok := r.files[name]
	switch {
	case !ok:
		return nil, nil //nolint:nilnil // the machine's remains
	case p.Absent:
		return nil, unix.ENOENT
	}
	return &p, nil
}

// resolve returns the path without links of name, where link returns the targets; a link in the last segment stays without toEnd.
func (f *FS) resolve(name string, toEnd bool, link func(string) (string, bool, error)) (string, error) {
	name = path.Clean(name)
	if toEnd || name == "/" {
		return follow(name, link)
	}
	dir, err := follow(path.Dir(name), link)
	return path.Join(dir, path.Base(name)), err
}

// link returns the target of a link as it is planned, linkNow as it is.
func (f *FS) link(name string) (string, bool, error) {
	if f.rehearsal != nil {
		if p, ok := f.rehearsal.files[name]; ok {
			return p.Link, p.Link != "", nil
		}
	}
	return f.linkNow(name)
}

func (f *FS) linkNow(name string) (string, bool, error) {
	if ok, err := isLink(f.lstatNow(name)); !ok {
		return "", false, err
	}
	target, err := f.readlinkNow(name)
	return target, err == nil, err
}

// infoOf describes a planned file; nil is the zero Info.
func infoOf(p *PlannedFile) Info {
	if p == nil {
		return Info{}
	}
	info := Info{Mode: p.Mode, UID: p.UID, GID: p.GID, Size: int64(len(p.Content))}
	switch {
	case p.Directory:
		info.Mode |= fs.ModeDir
	case p.Link != "":
		info.Mode, info.Size = fs.ModeSymlink|fs.ModePerm, int64(len(p.Link))
	}
	return info
}

// plannedNames adds to the names in a directory of the machine those that are planned there, and removes those that are to go.
func (f *FS) plannedNames(directory string, names []string) []string {
	if f.rehearsal == nil {
		return names
	}
	for at, p := range f.rehearsal.files {
		if path.Dir(at) != directory || at == directory {
			continue
		}
		base := path.Base(at)
		names = slices.DeleteFunc(names, func(name string) bool { return name == base })
		if !p.Absent {
			names = append(names, base)
		}
	}
	return names
}

// follow returns the path without links that the segments of name lead to, where link returns the target of a link, and ok false for
// anything else.
func follow(name string, link func(name string) (target string, ok bool, err error)) (string, error) {
	at, rest := "/", name
	for links := 0; rest != ""; {
		var segment string
		segment, rest, _ = strings.Cut(rest, "/")
		switch segment {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, segment)
		target, ok, err := link(next)
		if err != nil {
			return "", err
		}
		if !ok {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", unix.ELOOP
		}
		if strings.HasPrefix(target, "/") {
			at = "/"
		}
		rest = target + "/" + rest
	}
	return at, nil
}

// isLink reports whether an entry is a link; what is absent is none.
func isLink(info Info, err error) (bool, error) {
	if isAbsent(err) {
		return false, nil
	}
	return err == nil && info.Mode.Type() == fs.ModeSymlink, err
}
