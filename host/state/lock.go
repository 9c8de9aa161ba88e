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

// ErrLocked says that another run holds the lock.
var ErrLocked = errors.New("another run is in progress")

// Process is one that holds a lock.
type Process struct {
	PID     int
	Command string
}

// LockedError is ErrLocked with the processes that hold the lock, as far as this user may see them.
type LockedError struct {
	Run  int       // the process of the run that goes on; 0: unknown, or gone
	Left []Process // what the processes of a run that is gone have left behind
}

// Is makes it ErrLocked.
func (*LockedError) Is(target error) bool { return target == ErrLocked }

// Error names the run, or what is left of one.
func (e *LockedError) Error() string {
	switch {
	case len(e.Left) > 0:
		var left []string
		for _, p := range e.Left {
			left = append(left, fmt.Sprintf("%d (%s)", p.PID, p.Command))
		}
		return "processes of a run that was killed are still at work: " + strings.Join(left, ", ")
	case e.Run > 0:
		return fmt.Sprintf("%s (process %d)", ErrLocked, e.Run)
	default:
		return ErrLocked.Error()
	}
}

// locked says who holds a lock. signer is the process ID in the file, 0 where there is none.
func locked(file *os.File, signer int) error {
	all, taker := holders(file)
	if slices.ContainsFunc(all, func(p Process) bool { return p.PID == taker }) {
		return &LockedError{Run: taker}
	}
	if len(all) > 0 {
		return &LockedError{Left: all}
	}
	return &LockedError{Run: signer}
}

// Lock is held from Acquire to Release, and by every process that inherits its descriptor: nothing of an earlier run
// is still at work once it can be had.
type Lock struct {
	file     *os.File
	writable bool
}

// Acquire takes the lock on a file, made when it is missing, or on a directory (an image root, which must not gain a
// file). It does not wait for another run: a held lock is a LockedError.
func Acquire(path string) (*Lock, error) {
	file, writable, err := openLock(path)
	if err != nil {
		return nil, stateError(err)
	}
	if err := takeLock(file); err != nil {
		if errors.Is(err, ErrLocked) {
			err = locked(file, readSigner(file, writable))
			_ = file.Close() // only read from
			return nil, err
		}
		return nil, stateError(errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close()))
	}
	l := &Lock{file: file, writable: writable}
	_ = l.sign() // only people read it; where there is no room for it, the report finds none either and says so
	return l, nil
}

// takeLock outlasts Held, which has the lock for a moment: a glance at the status must not fail a run.
func takeLock(file *os.File) error {
	for try := 0; ; try++ {
		err := tryLock(file, exclusive)
		if !errors.Is(err, ErrLocked) || try == 20 {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// openLock opens a directory or a regular file and nothing else: sign empties the file. Only this user can open the
// file: whoever can, can hold the lock.
func openLock(path string) (*os.File, bool, error) {
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.IsDir():
		file, err := os.Open(path)
		return file, false, err
	case err == nil && !info.Mode().IsRegular():
		return nil, false, fmt.Errorf("%s is not a regular file: remove it", path)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|noFollow, 0o600)
	return file, true, err
}

// sign leaves the process ID in the file, for people.
func (l *Lock) sign() error {
	if !l.writable {
		return nil
	}
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// readSigner is the process ID that sign has left in a lock file; 0 where there is none.
func readSigner(file *os.File, writable bool) int {
	if !writable { // a directory
		return 0
	}
	data, err := io.ReadAll(io.NewSectionReader(file, 0, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0
	}
	return pid
}

// File is the descriptor that child processes inherit.
func (l *Lock) File() *os.File { return l.file }

// Release gives the lock up, as soon as no child holds it either.
func (l *Lock) Release() error { return l.file.Close() }

// Held says whether some process holds the lock file. It makes no file. A user who may not open it is told what the
// system tells about locks, which on some file systems is nothing.
func Held(path string) bool {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		return listed(path)
	}
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }() // gives the lock up again, if it was had
	return errors.Is(tryLock(file, shared), ErrLocked)
}

// lockKind: shared locks get along with each other, so that two glances do not take each other for a run.
type lockKind int

const (
	exclusive lockKind = iota
	shared
)
