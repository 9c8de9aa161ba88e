package install

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/trust"
)

// target is the directory of --to, locked.
type target struct {
	path   string // without links
	root   *os.Root
	dir    *os.File // to make changes durable
	unlock func()
	made   []string // the directory and its parents, as far as this run made them
	ours   bool     // nothing in it is of another program
}

// openTarget creates the directory if needed, checks that only trusted users can change it, and locks it.
func openTarget(to string) (_ *target, err error) {
	t := &target{}
	defer func() {
		if err != nil {
			t.close(true)
		}
	}()
	if t.path, err = filepath.Abs(to); err != nil {
		return nil, err
	}
	if err := trust.Parent(t.path); err != nil {
		return nil, err
	}
	if err := t.makeAll(t.path); err != nil {
		return nil, err
	}
	if t.path, err = trust.Directory(t.path, false); err != nil {
		return nil, err
	}
	if t.root, err = os.OpenRoot(t.path); err != nil {
		return nil, err
	}
	if t.dir, err = t.root.Open("."); err != nil {
		return nil, err
	}
	t.unlock, err = lock(t.root)
	return t, err
}

// makeAll creates a directory and its parents, whatever the umask, and makes them durable.
func (t *target) makeAll(dir string) error {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if err := t.makeAll(parent); err != nil {
		return err
	}
	if err := t.makeOne(dir); err != nil {
		return err
	}
	at, err := os.Open(parent)
	if err != nil {
		return err
	}
	return errors.Join(at.Sync(), at.Close())
}

// makeOne creates a directory. What another process has created meanwhile stays as it is: it can be a link.
func (t *target) makeOne(dir string) error {
	err := os.Mkdir(dir, directory)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	t.made = append(t.made, dir)
	file, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Chmod(directory), file.Close())
}

// close releases the lock. After a failure it removes what this run left, also the directories that it made and that are empty.
func (t *target) close(failed bool) {
	if failed && t.ours {
		_ = t.cleanUp() // the next run tries again
		if n, err := t.seen(); err == nil && n.sequence == 0 && t.root.Remove(releases) == nil {
			_ = t.root.Remove(sequence) // likewise
		}
	}
	if t.unlock != nil {
		t.unlock()
	}
	for _, dir := range slices.Backward(t.made) {
		if failed {
			_ = unix.Rmdir(dir) // fails unless it is empty
		}
	}
	if t.root != nil {
		_ = t.root.Close() // opened for reading only
	}
	_ = t.dir.Close() // likewise
}
