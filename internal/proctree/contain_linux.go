package proctree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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
	theirs := os.NewFile(uintptr(ends[1]), "guard")
	defer func() { _ = theirs.Close() }() // nothing was written to it
	if err := unix.SetNonblock(ends[0], true); err != nil {
		return nil, errors.Join(fmt.Errorf("proctree: %w", err), unix.Close(ends[0]))
	}
	ours := os.NewFile(uintptr(ends[0]), "guard")
	cmd := exec.Command("/proc/self/exe") //nolint:noctx // it ends by itself when the socket is closed
	cmd.Args = []string{guard.Name}
	cmd.Env = []string{guard.Variable + "=", "GOMAXPROCS=1"} // it has one thing to do, and need not read how many CPUs it may use
	cmd.ExtraFiles = []*os.File{theirs}
	// A session of its own, so that neither the terminal's Ctrl-C nor a signal to the host's process group reaches what the
	// host means to end in its own order. No Pdeathsig: that would fire when the starting thread ends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("proctree: start the guard: %w", err), ours.Close())
	}
	t := &Tree{socket: ours, over: make(chan struct{}), processes: map[int]*Process{}}
	go t.listen(cmd)
	return t, nil
}

// listen takes the guard's answers until it says no more.
func (t *Tree) listen(cmd *exec.Cmd) {
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
	// The guard ends when it has killed all it had. Its exit status says nothing that could be acted upon.
	_ = cmd.Wait()
	for _, p := range left {
		p.lose()
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
