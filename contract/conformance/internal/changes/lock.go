package changes

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

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/atomicfile"
)

// holdTime is how long another writer keeps its locks after the first change was begun.
const holdTime = 500 * time.Millisecond

// inUse is the content of a temporary file of another writer.
const inUse = "of another process\n"

// WaitsForLocks is another process that writes the files of the case under the names of G-12: it has their temporary files,
// locked, and locks the directories, until Apply has had time to take them or has ended.
func WaitsForLocks(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	if !process.CanLock {
		return rig.Skipped("files cannot be locked by flock(2) on this operating system"), nil
	}
	want, err := f.Runner.Settled(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	if want.Reason != "" || len(want.Contents) == 0 {
		return rig.NotComparable(want, "it writes no file"), nil
	}
	if err := makeDirectories(f, want); err != nil {
		return rig.Result{}, err
	}
	held, err := hold(f, slices.Sorted(maps.Keys(want.Contents)))
	defer func() { _ = held.release() }() // closed already, unless something failed
	if err != nil {
		return rig.Result{}, err
	}
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	begun, done := make(chan struct{}, 1), make(chan process.Applied, 1)
	go func() {
		done <- p.CallApply(ctx, f.Applying(), 0, func(int, pluginv1.Event) {
			select {
			case begun <- struct{}{}:
			default:
			}
		})
	}()
	var run process.Applied
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
		return rig.Result{}, err
	}
	if !ended {
		run = <-done
	}
	if taken != "" {
		return rig.Failed(rig.Finding{
			Clause: "G-12", Expected: "Apply waits until the lock is free, or ends with Precondition or Retry",
			Got:   "Apply wrote, replaced or removed /" + taken + ", which another process had locked",
			Cause: "the temporary file is created without O_EXCL and flock(2); where a language has no flock(2), its name has to contain the process ID",
		}), nil
	}
	if err := run.Crashed(); err != nil {
		return rig.Result{}, err
	}
	if !run.Succeeded() {
		return f.Rerun(ctx, want, "while another process wrote the files")
	}
	return f.Compare(want, "after an Apply while another process wrote the files", rig.Finding{Clause: "G-12", Cause: raced})
}

// locks are the open temporary files of another writer by their names below the root, and the open directories.
type locks struct {
	root        string
	temporary   map[string]*os.File
	directories map[string]*os.File
}

// hold makes and locks the temporary files of these files, and locks their directories. A file of the case that has such a
// name stays as it is.
func hold(f *rig.Fixture, names []string) (locks, error) {
	l := locks{f.Root, map[string]*os.File{}, map[string]*os.File{}}
	for _, name := range names {
		dir := path.Dir(name)
		temporary := path.Join(dir, atomicfile.TemporaryName(path.Base(name)))
		at := filepath.Join(f.Root, filepath.FromSlash(temporary))
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
		if err := process.Lock(file); err != nil {
			return l, err
		}
		if l.directories[dir] == nil {
			if l.directories[dir], err = os.Open(filepath.Dir(at)); err != nil {
				return l, err
			}
			if err := process.Lock(l.directories[dir]); err != nil {
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
