package proctree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// fork starts a program on the calling thread.
func (t *Tree) fork(c Command) (_ *Process, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("proctree: %w", err)
	}
	defer func() { _ = null.Close() }() // nothing was written to it
	path, files, release, err := c.descriptors(null)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	defer release()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return nil, errEnded
	}
	// Not package os, which before its first process starts another one, to see how the kernel can wait.
	pid, err := syscall.ForkExec(path, append([]string{c.Path}, c.Arguments...), &syscall.ProcAttr{
		Dir: c.Dir, Env: c.Environment, Files: files,
		// A session of its own keeps a program from the terminal, and from the signals of one that is lost. Elsewhere a
		// process group is enough: to the kernel each session is a party of its own that competes for the processors
		// (CONFIG_SCHED_AUTOGROUP), which costs a millisecond for each program.
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: t.self.terminal != 0, Setpgid: t.self.terminal == 0},
	})
	runtime.KeepAlive(c) // and so its files
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	p := &Process{tree: t, pid: pid, ended: make(chan struct{})}
	t.running[pid] = p
	return p, nil
}

// descriptors are the path by which the program is executed and its descriptors. What was opened for them is closed by
// release.
func (c Command) descriptors(null *os.File) (path string, files []uintptr, release func(), err error) {
	const closed = ^uintptr(0)
	for _, f := range append([]*os.File{c.Stdin, c.Stdout, c.Stderr}, c.Files...) {
		switch {
		case f != nil:
			files = append(files, f.Fd())
		case len(files) < 3:
			files = append(files, null.Fd())
		default:
			files = append(files, closed)
		}
	}
	path, release = c.Path, func() {}
	if c.Program == nil {
		return path, files, release, nil
	}
	// The interpreter of a script opens the script by the path that was executed, after the exec: a script gets the number
	// after the program's own descriptors, anything else a number that is closed by the exec.
	var magic [4]byte
	n, err := c.Program.ReadAt(magic[:], 0)
	if err != nil && n == 0 && !errors.Is(err, os.ErrClosed) {
		err = nil // too short: the exec says why it is no program
	}
	if err == nil && string(magic[:n]) != "\x7fELF" {
		files = append(files, c.Program.Fd())
		return "/proc/self/fd/" + strconv.Itoa(len(files)-1), files, release, nil
	}
	// Above the numbers that syscall.ForkExec uses on its way, which follow the highest of files.
	above := len(files)
	for _, fd := range files {
		if fd != closed {
			above = max(above, int(fd)) //nolint:gosec // a descriptor fits an int
		}
	}
	const room = 16
	program, err := unix.FcntlInt(c.Program.Fd(), unix.F_DUPFD_CLOEXEC, above+len(files)+room)
	if err != nil {
		return "", nil, nil, err
	}
	return "/proc/self/fd/" + strconv.Itoa(program), files, func() { _ = unix.Close(program) }, nil // only executed
}

// orphanGrace bounds how long the end of a program waits for the orphans that it left: the kernel keeps a process that
// waits for a device.
const orphanGrace = 5 * time.Second

// await collects the program, and kills its process group and what it orphaned.
func (p *Process) await() {
	for errors.Is(unix.Waitid(unix.P_PID, p.pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	t := p.tree
	t.mu.Lock()
	_ = p.Kill() // its group: the number is its own until it is collected
	p.mu.Lock()
	p.status, p.gone = collect(p.pid), true
	p.mu.Unlock()
	delete(t.running, p.pid)
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), orphanGrace)
	defer cancel()
	_, _ = t.KillOrphans(ctx) // what is left is killed again, and named, by KillDescendants
	close(p.ended)
}

// PID is the process ID of the program.
func (p *Process) PID() int { return p.pid }

// Wait returns when the program and the orphans that it left are gone. The status is the program's exit status, or 128
// and the signal's number for a program that a signal ended. Wait may be called at any time and more than once.
func (p *Process) Wait() (status int, err error) {
	<-p.ended
	return p.status, nil
}

// Kill kills the program and its process group; Wait returns when they are gone. It may be called at any time and more
// than once.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return nil
	}
	for _, pid := range []int{-p.pid, p.pid} { // the group may be one that the program has left
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("proctree: kill process %d: %w", p.pid, err)
		}
	}
	return nil
}
