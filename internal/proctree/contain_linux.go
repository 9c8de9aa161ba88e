package proctree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/proctree/guard"
)

// Tree is this process with all its descendants.
type Tree struct {
	socket *os.File      // orders to the guard, and its answers
	over   chan struct{} // closed when the guard is gone and collected

	sending sync.Mutex // an order that is being sent must not be cut in two

	mu        sync.Mutex
	processes map[int]*Process // that the guard has something to tell of, by their IDs
	last      int              // the last ID that was given
	gone      bool             // the guard says no more
}

var errGuardGone = errors.New("proctree: the guard is gone")

// Contain makes this process the one to which its orphaned descendants come, for the rest of its life, and starts the
// guard. A program calls it once, before it starts others. KillDescendants ends the guard; so does the end of this process.
func Contain() (*Tree, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("proctree: become a subreaper: %w", err)
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("proctree: %w", err)
	}
	pid, err := startGuard(uintptr(ends[1]))
	// The guard's end blocks, ours does not: that is how a read of it can be given up.
	if err = errors.Join(err, unix.Close(ends[1]), unix.SetNonblock(ends[0], true)); err != nil {
		return nil, errors.Join(fmt.Errorf("proctree: start the guard: %w", err), unix.Close(ends[0]))
	}
	t := &Tree{socket: os.NewFile(uintptr(ends[0]), "guard"), over: make(chan struct{}), processes: map[int]*Process{}}
	go t.listen(pid)
	return t, nil
}

// startGuard starts this executable once more, with one end of the socket. It does so without package os, which before
// its first process starts another one, to see how the kernel can wait.
func startGuard(socket uintptr) (pid int, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, null.Close()) }()
	return syscall.ForkExec("/proc/self/exe", []string{guard.Name}, &syscall.ProcAttr{
		Env:   []string{guard.Variable + "=", "GOMAXPROCS=1"}, // it does one thing at a time
		Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), socket},
		// A session of its own, so that neither the terminal's Ctrl-C nor a signal to the host's process group reaches
		// what the host means to end in its own order. No Pdeathsig: that would fire when the starting thread ends.
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
}

// listen takes the guard's answers until it says no more.
func (t *Tree) listen(pid int) {
	defer close(t.over)
	for {
		var message [guard.AnswerBytes]byte
		if _, err := io.ReadFull(t.socket, message[:]); err != nil {
			break
		}
		t.take(guard.DecodeAnswer(message))
	}
	t.mu.Lock()
	t.gone = true
	left := t.processes
	t.processes = nil
	t.mu.Unlock()
	_ = t.socket.Close() // it may be closed already, and nothing more can be said on it
	waitFor(pid)         // it ends when it has killed all it had
	for _, p := range left {
		p.lose()
	}
}

// waitFor collects a child. Its exit status says nothing that could be acted upon; KillDescendants may have had it.
func waitFor(pid int) {
	for {
		if _, err := syscall.Wait4(pid, nil, 0, nil); !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

func (t *Tree) take(a guard.Answer) {
	t.mu.Lock()
	p := t.processes[a.ID]
	if a.Event != guard.Started {
		delete(t.processes, a.ID)
	}
	t.mu.Unlock()
	if p != nil {
		p.take(a)
	}
}

// send gives the guard an order.
func (t *Tree) send(o guard.Order, descriptors []int) error {
	message, err := o.Encode()
	if err != nil {
		return fmt.Errorf("proctree: %w", err)
	}
	var rights []byte
	if len(descriptors) > 0 {
		rights = unix.UnixRights(descriptors...)
	}
	t.sending.Lock()
	defer t.sending.Unlock()
	raw, err := t.socket.SyscallConn()
	if err != nil {
		return errGuardGone
	}
	var failure error
	err = raw.Write(func(socket uintptr) bool {
		for len(message) > 0 && failure == nil {
			n, err := unix.SendmsgN(int(socket), message, rights, nil, unix.MSG_NOSIGNAL)
			switch {
			case errors.Is(err, unix.EAGAIN):
				return false // called again when there is room
			case errors.Is(err, unix.EINTR):
			case err != nil:
				failure = err
			default:
				message, rights = message[n:], nil // the descriptors went with the first byte
			}
		}
		return true
	})
	if err != nil || failure != nil {
		return errGuardGone
	}
	return nil
}

// guardGrace is how long a guard may take to end what it has before it is killed itself: one that is stopped never ends.
const guardGrace = 5 * time.Second

// KillDescendants kills every descendant, guarded or not, the guard last, and returns when none is left: the last step
// of a program on its way out, after which Start starts nothing. It collects the exit status of every child, which alone
// proves that none is left; an exec.Cmd.Wait that runs meanwhile may fail for want of its own. When ctx ends first, the
// error names the processes that are left.
func (t *Tree) KillDescendants(ctx context.Context) error {
	_ = t.socket.Close() // closed already when this is not the first call
	grace := time.NewTimer(guardGrace)
	defer grace.Stop()
	select {
	case <-t.over:
	case <-grace.C:
	case <-ctx.Done():
	}
	return killDescendants(ctx)
}
