package rooted

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/windows"
)

// Root is a directory that confines path resolution, by os.Root. An empty base means the live machine, which has several
// volumes.
type Root struct{ base string }

// OpenRoot opens a root; "" means the root of the live machine.
func OpenRoot(dir string) (*Root, error) {
	if dir == "" {
		return &Root{}, nil
	}
	handle, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Root{base: dir}, handle.Close()
}

// Close releases the root.
func (*Root) Close() error { return nil }

// Enter opens the directory that confines an access to name, and returns name relative to it.
func (r *Root) Enter(name string) (*os.Root, string, error) {
	volume := filepath.VolumeName(name)
	rest := filepath.ToSlash(name[len(volume):])
	if rest == "" || rest[0] != '/' {
		return nil, "", fmt.Errorf("%w: not an absolute path of the target", fs.ErrInvalid)
	}
	if slices.Contains(strings.Split(rest, "/"), "..") || !filepath.IsLocal("."+filepath.FromSlash(rest)) {
		return nil, "", fmt.Errorf("%w: the path leaves its volume", fs.ErrInvalid)
	}
	base := r.base
	if base == "" {
		if volume == "" {
			// Not from the environment, which is empty in a plugin.
			system, err := windows.GetSystemWindowsDirectory()
			if err != nil {
				return nil, "", err
			}
			volume = filepath.VolumeName(system)
		}
		base = volume + `\`
	}
	root, err := os.OpenRoot(base)
	return root, filepath.Clean("." + filepath.FromSlash(rest)), err
}

// OpenFile opens a regular file for reading. Any other file is refused without being opened.
func (r *Root) OpenFile(name string) (_ *os.File, err error) {
	root, relative, err := r.Enter(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return openFile(root, relative)
}

// OpenDir opens a directory by name, after a check that it is inside the root.
func (r *Root) OpenDir(name string) (_ *os.File, err error) {
	root, relative, err := r.Enter(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	inside, err := root.OpenRoot(relative)
	if err != nil {
		return nil, err
	}
	if err := inside.Close(); err != nil {
		return nil, err
	}
	return os.Open(filepath.Join(root.Name(), relative))
}

// Readlink fails: on Windows, no write follows a link.
func Readlink(*os.File, string) (string, error) { return "", errors.ErrUnsupported }
