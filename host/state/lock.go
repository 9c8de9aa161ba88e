package state

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Lock is held until Release, and until every process that inherited its descriptor has ended: when a run acquires it, no
// process of an earlier run is left.
type Lock struct{ file *os.File }

// Acquire takes the lock on a file, which it creates if necessary, or on a directory (an image root, which must not gain a
// file). It does not wait: a held lock is a *LockedError.
func Acquire(path string) (*Lock, error) {
	file, err := openLock(path)
	if err != nil {
		return nil, stateError(err)
	}
	// Held takes the lock for a moment, which must not fail a run.
	for try := 0; ; try++ {
		if err = tryLock(file, true); !errors.Is(err, ErrLocked) || try == 20 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if errors.Is(err, ErrLocked) {
		err = lockedBy(file)
		_ = file.Close() // opened for reading only
		return nil, err
	}
	if err != nil {
		return nil, stateError(errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close()))
	}
	_ = writePID(file) // informative; a full disk fails the report too
	return &Lock{file: file}, nil
}

// lockedBy returns the error for a held lock.
func lockedBy(file *os.File) error {
	all, taker := holders(file)
	switch {
	case slices.ContainsFunc(all, func(p Process) bool { return p.PID == taker }), hidden(taker):
		return &LockedError{Run: taker}
	case len(all) > 0:
		return &LockedError{Left: all}
	}
	return &LockedError{Run: readPID(file)}
}

// openLock opens a directory or a regular file; Acquire truncates the file. Only this user can open the file, because a
// process that can open it can hold the lock.
func openLock(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.IsDir():
		return os.Open(path)
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file: remove it", path)
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|noFollow, 0o600)
}

// writePID writes the process ID into the file. It fails for a directory, which has none.
func writePID(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// readPID returns the process ID in a lock file, or 0.
func readPID(file *os.File) int {
	data, err := io.ReadAll(io.NewSectionReader(file, 0, 32))
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(data))) // 0 if it is none
	return pid
}

// File returns the descriptor that child processes inherit.
func (l *Lock) File() *os.File { return l.file }

// Release ends the lock of this process; children keep theirs.
func (l *Lock) Release() error { return l.file.Close() }

// Held reports whether a process holds the lock. It creates no file. For a user who cannot open the file it relies on
// /proc/locks, which lists no locks of some file systems.
func Held(path string) bool {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		return listed(path)
	}
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }() // releases the shared lock
	return errors.Is(tryLock(file, false), ErrLocked)
}
