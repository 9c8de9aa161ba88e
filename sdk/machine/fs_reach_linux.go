package machine

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

func (f *FS) destination(name string) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	return follow(name, f.link)
}

func (f *FS) reaches(name string, directories []string) (string, error) {
	destination, err := f.destination(name)
	if err != nil {
		return "", err
	}
	above := f.identities(destination)
	for _, directory := range directories {
		resolved, err := f.destination(directory)
		if err != nil {
			return "", err
		}
		if within(destination, directory) || within(destination, resolved) {
			return directory, nil
		}
		if itself, ok := f.identity(resolved); ok && above[itself] {
			return directory, nil
		}
	}
	return "", nil
}

func within(name, directory string) bool {
	return name == directory || strings.HasPrefix(name, directory+"/")
}

// fileID identifies an existing file.
type fileID struct{ device, inode uint64 }

// identities returns the identities of what exists of a path, itself included, without the root.
func (f *FS) identities(name string) map[fileID]bool {
	all := map[fileID]bool{}
	for ; name != "/"; name = path.Dir(name) {
		if id, ok := f.identity(name); ok {
			all[id] = true
		}
	}
	return all
}

// identity returns the identity of a file; ok is false if the file is missing or cannot be opened.
func (f *FS) identity(name string) (_ fileID, ok bool) {
	reference, err := f.lookup(name)
	if err != nil {
		return fileID{}, false
	}
	var s unix.Stat_t
	err = unix.Fstat(int(reference.Fd()), &s)
	return fileID{s.Dev, s.Ino}, closed(reference, err) == nil
}
