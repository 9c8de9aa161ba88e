package proctree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exit statuses of a program that could not be started, as shells have them.
const (
	exitNotStarted = 126
	exitNotFound   = 127
	exitSignal     = 128
)

// MainIfGuard runs the guard and does not return if this process was started as one. Otherwise it does nothing.
func MainIfGuard() {
	if len(os.Args) == 0 || os.Args[0] != guardName {
		return
	}
	status, err := runGuard(os.Args)
	if err != nil {
		// Nobody is left to tell if this write fails.
		_, _ = fmt.Fprintf(os.Stderr, "%s: %v\n", guardName, err)
	}
	os.Exit(status)
}

func runGuard(argv []string) (int, error) {
	// Pdeathsig is tied to the thread that starts the program: this goroutine keeps its thread until the guard exits.
	runtime.LockOSThread()
	o, err := decodeOrder(argv)
	if err != nil {
		return exitNotStarted, fmt.Errorf("not started by proctree: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return exitNotStarted, fmt.Errorf("become a subreaper: %w", err)
	}
	if abandoned(o.lifeline()) {
		return exitSignal + int(syscall.SIGKILL), nil
	}
	syscall.CloseOnExec(o.lifeline())
	// Taken and dropped, not ignored: the program would inherit that. A service manager that stops the host signals
	// every process of the unit; what happens then is the host's to decide, in its own order.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	exited := make(chan os.Signal, 1)
	signal.Notify(exited, syscall.SIGCHLD)
	hostGone := make(chan struct{})
	go waitForEOF(o.lifeline(), hostGone)

	g := waiter{}
	g.child, err = o.start()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return exitNotFound, fmt.Errorf("start %s: %w", o.path, err)
	case err != nil:
		return exitNotStarted, fmt.Errorf("start %s: %w", o.path, err)
	}
	for g.child != 0 {
		select {
		case <-exited:
			g.reap()
			continue
		case <-hostGone:
		}
		break
	}
	killAll(&g)
	return g.status, nil
}

// abandoned reports whether the host has called Kill, or is gone, before the program is started.
func abandoned(lifeline int) bool {
	if !inherited(lifeline) {
		return true
	}
	poll := []unix.PollFd{{Fd: int32(lifeline)}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n > 0 && poll[0].Revents&unix.POLLHUP != 0
}

// inherited reports whether the descriptor came with the exec. In gaps that the host left, the Go runtime opens files
// of its own, which are closed on exec.
func inherited(descriptor int) bool {
	flags, err := unix.FcntlInt(uintptr(descriptor), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC == 0
}

// waitForEOF returns when the host is gone or has let go: nothing is ever written to the lifeline.
func waitForEOF(descriptor int, gone chan<- struct{}) {
	defer close(gone)
	var b [1]byte
	for {
		n, err := syscall.Read(descriptor, b[:])
		if n <= 0 && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// start starts the program and returns its process ID.
func (o order) start() (int, error) {
	path := o.path
	last := o.lifeline() - 1
	if o.program >= 0 {
		path = "/proc/self/fd/" + strconv.Itoa(o.program)
		elf, err := isELF(o.program)
		if err != nil {
			return 0, err
		}
		if elf {
			syscall.CloseOnExec(o.program)
		} else {
			last = o.program // the interpreter opens the script by that name, after the exec
		}
	}
	const closed = ^uintptr(0)
	files := make([]uintptr, last+1)
	for i := range files {
		files[i] = uintptr(i)
		if !inherited(i) || i == o.lifeline() {
			files[i] = closed
		}
	}
	return syscall.ForkExec(path, o.arguments, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: files,
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
}

func isELF(descriptor int) (bool, error) {
	var magic [4]byte
	n, err := syscall.Pread(descriptor, magic[:], 0)
	if err != nil {
		return false, err
	}
	return string(magic[:n]) == "\x7fELF", nil
}

// killAll returns when no descendant is left: each one whose parent dies becomes a child of this subreaper.
func killAll(g *waiter) {
	for wait := firstWait; g.reap(); wait = wait.next() {
		if g.child != 0 {
			// Also where /proc hides processes (hidepid). It cannot hit another: a child that is not yet collected keeps its ID.
			_ = syscall.Kill(g.child, syscall.SIGKILL)
		}
		// An error to list or to kill is met by trying again: there is nothing better to do, and no one to tell.
		_, _ = killChildren()
		wait.sleep()
	}
}
