package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/atomicfile"
)

// holdTime is how long another writer keeps its locks after the first change was begun.
const holdTime = 500 * time.Millisecond

// inUse is the content of a temporary file of another writer.
const inUse = "of another process\n"

// waitsForLocks is another process that writes the files of the case under the names of G-12: it has their temporary files,
// locked, and locks the directories, until Apply has had time to take them or has ended.
func waitsForLocks(ctx context.Context, f *fixture) (result, error) {
	if !canLock {
		return skipped("files cannot be locked by flock(2) on this operating system"), nil
	}
	want, err := f.runner.settled(ctx)
	if err != nil {
		return result{}, err
	}
	if want.reason != "" || len(want.contents) == 0 {
		return notComparable(want, "it writes no file"), nil
	}
	if err := f.makeDirectories(want); err != nil {
		return result{}, err
	}
	held, err := f.hold(slices.Sorted(maps.Keys(want.contents)))
	defer func() { _ = held.release() }() // closed already, unless something failed
	if err != nil {
		return result{}, err
	}
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	begun, done := make(chan struct{}, 1), make(chan applied, 1)
	go func() {
		done <- p.apply(ctx, f.applying(), 0, func(int, pluginv1.Event) {
			select {
			case begun <- struct{}{}:
			default:
			}
		})
	}()
	var run applied
	ended := false
	for limit := time.NewTimer(10 * holdTime); !ended; {
		select {
		case <-begun:
			limit.Reset(holdTime)
			continue
		case run = <-done:
			ended = true
			limit.Stop()
		case <-limit.C:
		}
		break
	}
	taken, err := held.taken()
	if err := errors.Join(err, held.release()); err != nil {
		return result{}, err
	}
	if !ended {
		run = <-done
	}
	if taken != "" {
		return failed(finding{
			clause: "G-12", expected: "Apply waits until the lock is free, or ends with Precondition or Retry",
			got:   "Apply wrote, replaced or removed /" + taken + ", which another process had locked",
			cause: "the temporary file is created without O_EXCL and flock(2); where a language has no flock(2), its name has to contain the process ID",
		}), nil
	}
	if err := run.crashed(); err != nil {
		return result{}, err
	}
	if !run.succeeded() {
		return f.rerun(ctx, want, "while another process wrote the files")
	}
	return f.compare(want, "after an Apply while another process wrote the files", finding{clause: "G-12", cause: raced})
}

// locks are the open temporary files of another writer by their names below the root, and the open directories.
type locks struct {
	root        string
	temporary   map[string]*os.File
	directories map[string]*os.File
}

// hold makes and locks the temporary files of these files, and locks their directories. A file of the case that has such a
// name stays as it is.
func (f *fixture) hold(names []string) (locks, error) {
	l := locks{f.root, map[string]*os.File{}, map[string]*os.File{}}
	for _, name := range names {
		dir := path.Dir(name)
		temporary := path.Join(dir, atomicfile.TemporaryName(path.Base(name)))
		at := filepath.Join(f.root, filepath.FromSlash(temporary))
		if dir == "." { // the host has locked the root itself
			continue
		}
		file, err := os.OpenFile(at, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return l, err
		}
		l.temporary[temporary] = file
		if _, err := file.WriteString(inUse); err != nil {
			return l, err
		}
		if err := lock(file); err != nil {
			return l, err
		}
		if l.directories[dir] == nil {
			if l.directories[dir], err = os.Open(filepath.Dir(at)); err != nil {
				return l, err
			}
			if err := lock(l.directories[dir]); err != nil {
				return l, err
			}
		}
	}
	return l, nil
}

// taken returns the name of a temporary file that is not as it was made, or "".
func (l locks) taken() (string, error) {
	for _, name := range slices.Sorted(maps.Keys(l.temporary)) {
		mine, err := l.temporary[name].Stat()
		if err != nil {
			return "", err
		}
		at := filepath.Join(l.root, filepath.FromSlash(name))
		now, err := os.Lstat(at)
		if err != nil || !os.SameFile(mine, now) {
			return name, nil //nolint:nilerr // it is gone
		}
		data, err := os.ReadFile(at)
		if err != nil || string(data) != inUse {
			return name, err
		}
	}
	return "", nil
}

// release removes the temporary files that are still in place, as their writer does, and ends the locks.
func (l locks) release() error {
	var err error
	for name, file := range l.temporary {
		at := filepath.Join(l.root, filepath.FromSlash(name))
		mine, failure := file.Stat()
		if now, missing := os.Lstat(at); failure == nil && missing == nil && os.SameFile(mine, now) {
			failure = os.Remove(at)
		}
		err = errors.Join(err, failure, file.Close())
		delete(l.temporary, name)
	}
	for name, dir := range l.directories {
		err = errors.Join(err, dir.Close())
		delete(l.directories, name)
	}
	if err != nil {
		return fmt.Errorf("end the locks of another writer: %w", err)
	}
	return nil
}
