package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func acquired(t *testing.T, path string) *Lock {
	t.Helper()
	l, err := Acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Release(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	})
	return l
}

func release(t *testing.T, l *Lock) {
	t.Helper()
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

func wantLocked(t *testing.T, path string, words ...string) {
	t.Helper()
	l, err := Acquire(path)
	if err == nil {
		release(t, l)
		t.Fatal("the lock was acquired twice")
	}
	if !errors.Is(err, ErrLocked) || errors.Is(err, ErrState) {
		t.Errorf("%v, want that it is locked", err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}

// wantFree waits, because a process that another test starts has every descriptor until it executes its program.
func wantFree(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); Held(path); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is still held")
		}
	}
}

func TestLockExcludesInOneProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	l := acquired(t, path)
	wantLocked(t, path, fmt.Sprintf("(process %d)", os.Getpid()))
	if !Held(path) {
		t.Error("it is held")
	}
	if pid := readPID(l.File()); pid != os.Getpid() {
		t.Errorf("the file has process ID %d, want %d", pid, os.Getpid())
	}
	release(t, l)
	wantFree(t, path)
	acquired(t, path)
}

func TestLockExcludesOtherProcesses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	write(t, path, "99999999 and a longer text of another program\n", 0o600)
	pid, end := process(t, "hold", path)
	wantLocked(t, path, fmt.Sprintf("another run is in progress (process %d)", pid))
	if !Held(path) {
		t.Error("it is held")
	}
	end()
	wantFree(t, path)
	acquired(t, path)
}

// TestChildKeepsTheLock: no run starts while a plugin of an earlier run is running.
func TestChildKeepsTheLock(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("on Windows locks are not inherited: the job object ends the children")
	}
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "lock"), dir} {
		l := acquired(t, path)
		pid, end := process(t, "keep", path, l.File())
		wantLocked(t, path, fmt.Sprintf("another run is in progress (process %d)", os.Getpid()))
		release(t, l)
		wantLocked(t, path, fmt.Sprintf("processes of a run that was killed are still at work: %d (%s", pid, os.Args[0]))
		if !Held(path) {
			t.Error("a child holds it")
		}
		end()
		wantFree(t, path)
		release(t, acquired(t, path))
	}
}

func TestDirectoryLock(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows cannot lock directories")
	}
	dir := t.TempDir()
	before := tree(t, dir)
	l := acquired(t, dir)
	wantLocked(t, dir)
	if during := tree(t, dir); during != before {
		t.Errorf("the directory gained\n%s", during)
	}
	release(t, l)
	if after := tree(t, dir); after != before {
		t.Errorf("the directory gained\n%s", after)
	}
}

// TestHeldDoesNotDisturbARun: the lock of Held neither fails a run that starts, nor counts as one.
func TestHeldDoesNotDisturbARun(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	release(t, acquired(t, path))
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := tryLock(reader, false); err != nil {
		t.Fatal(err)
	}
	if Held(path) {
		t.Error("a shared lock was taken for a run")
	}
	over := make(chan error)
	time.AfterFunc(10*time.Millisecond, func() { over <- reader.Close() })
	got := make(chan error)
	go func() {
		l, err := Acquire(path)
		if err == nil {
			err = l.Release()
		}
		got <- err
	}()
	if err := <-over; err != nil {
		t.Error(err)
	}
	if err := <-got; err != nil {
		t.Errorf("a shared lock failed a run: %v", err)
	}
}

func TestHeldCreatesNoFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	if Held(path) || exists(t, path) {
		t.Error("there is no lock")
	}
}

func TestPathIsNoLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := Acquire(filepath.Join(dir, "missing", "lock"))
	wantState(t, err, "missing")
	if runtime.GOOS == "windows" {
		return
	}
	victim, link := filepath.Join(dir, "victim"), filepath.Join(dir, "lock")
	write(t, victim, "precious", 0o600)
	if err := os.Symlink(victim, link); err != nil {
		t.Fatal(err)
	}
	_, err = Acquire(link)
	wantState(t, err, link, "remove it")
	if data, err := os.ReadFile(victim); err != nil || string(data) != "precious" {
		t.Errorf("the target of the link now contains %q (%v)", data, err)
	}
}
