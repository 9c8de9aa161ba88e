//go:build unix

package state

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/rooted"
)

// ImageChoices is the file of an image with the providers chosen in its bake.
const ImageChoices = "/etc/machineadm/choices.json"

// ImageWrites is the record of an image.
const ImageWrites = "/etc/machineadm/.pending"

// absent reports that a path does not exist, so that it has no leftovers.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) }

func removeAt(dir *os.File, base string) error {
	defer runtime.KeepAlive(dir)
	return unix.Unlinkat(int(dir.Fd()), base, 0)
}

// makeDir creates a directory and its parents, readable by every user.
func makeDir(root *rooted.Root, name string) (_ *os.File, err error) {
	above, err := root.OpenDir(path.Dir(name))
	if absent(err) && name != "/" {
		above, err = makeDir(root, path.Dir(name))
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, above.Close()) }()
	err = unix.Mkdirat(int(above.Fd()), path.Base(name), 0o755)
	if err == nil {
		err = unix.Fchmodat(int(above.Fd()), path.Base(name), 0o755, 0)
	}
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, err
	}
	return root.OpenDir(name)
}
