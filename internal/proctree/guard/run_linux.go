package guard

import (
	"errors"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"github.com/machineadm/machineadm/internal/proctree/proc"
)

// Exit statuses of a guard.
const (
	exitDone    = 0
	exitNoGuard = 126 // it could not become one
)

// guard has programs and adopts what they leave behind.
type guard struct {
	socket  int
	self    int
	running []*program
	// ended are programs that are dead, but not all that they left behind.
	ended []*program
	// pause is how long after the last time what they left behind is looked for again.
	pause milliseconds
}

// milliseconds is how poll(2) counts.
type milliseconds int

const setChildSubreaper = 36 // PR_SET_CHILD_SUBREAPER of prctl(2)

const (
	forever   milliseconds = -1
	firstWait milliseconds = 1
	lastWait  milliseconds = 50
)

type program struct {
	id, pid int
	// handle is readable when the program is dead: a pidfd, or -1 where the kernel has none.
	handle int
	status int
	// kept are the descriptors beyond stdin, stdout and stderr that the program was given: a lock on one of them is
	// free only when all that the program has started is gone.
	kept []int
}

// run is the guard's life: until the host lets go of the socket, or is gone.
func run(socket int) (status int) {
	runtime.LockOSThread() // see PR_SET_PDEATHSIG in child.fork
	syscall.CloseOnExec(socket)
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, setChildSubreaper, 1, 0, 0, 0, 0); errno != 0 {
		return exitNoGuard
	}
	if err := ignoreSignals(); err != nil {
		return exitNoGuard
	}
	g := &guard{socket: socket, self: syscall.Getpid()}
	for {
		asked, err := g.wait()
		if err == nil && asked {
			err = g.obey()
		}
		if err != nil {
			break // the host is gone, or makes no sense any more
		}
		g.collect()
		g.clean()
	}
	g.killAll()
	return exitDone
}

// ignoreSignals: a service manager that stops the host signals every process of the unit, and what happens then is the
// host's to decide, in its own order. Programs are started with every signal as it is by default.
func ignoreSignals() error {
	const ignore, maskBytes = 1, 8 // SIG_IGN, and the size of a kernel's set of signals
	action := [4]uint64{ignore}
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&action)), 0, maskBytes, 0, 0)
		if errno != 0 {
			return errno
		}
	}
	return nil
}

// wait returns when the host has something to say, a program is dead, or the pause is over.
func (g *guard) wait() (asked bool, err error) {
	type pollFd struct {
		descriptor       int32
		events, happened int16
	}
	const pollIn, pollHangup = 0x1, 0x10
	wait := forever
	if len(g.ended) > 0 {
		wait = g.pause
	}
	watched := make([]pollFd, 1, 1+len(g.running))
	watched[0] = pollFd{descriptor: int32(g.socket), events: pollIn}
	for _, p := range g.running {
		if p.handle < 0 { // then it is looked after now and then
			wait = lastWait
			continue
		}
		watched = append(watched, pollFd{descriptor: int32(p.handle), events: pollIn})
	}
	var limit *syscall.Timespec
	if wait != forever {
		t := wait.timespec()
		limit = &t
	}
	// Not poll(2), which some architectures do not have.
	_, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&watched[0])), uintptr(len(watched)),
		uintptr(unsafe.Pointer(limit)), 0, 0, 0)
	switch {
	case errno == syscall.EINTR:
		return false, nil
	case errno != 0:
		return false, errno
	case watched[0].happened&pollHangup != 0: // also if there are orders that it did not live to see obeyed
		return false, errHostGone
	}
	return watched[0].happened != 0, nil
}

func (m milliseconds) timespec() syscall.Timespec {
	return syscall.NsecToTimespec(int64(m) * 1_000_000)
}

// next is the pause after this one: short first, since most processes die at once, then longer, for one that hangs in
// the kernel.
func (m milliseconds) next() milliseconds { return min(max(2*m, firstWait), lastWait) }

// obey takes one order.
func (g *guard) obey() error {
	o, descriptors, err := receive(g.socket)
	if err != nil {
		return err
	}
	if o.Path == "" {
		for _, p := range g.running {
			if p.id == o.ID {
				p.kill()
			}
		}
		return nil
	}
	p, err := start(o, descriptors)
	if err != nil {
		errno := syscall.EIO
		_ = errors.As(err, &errno) // what is no errno is told as that one
		answer(g.socket, Answer{Event: Failed, ID: o.ID, Value: int(errno)})
		return nil
	}
	g.running = append(g.running, p)
	answer(g.socket, Answer{Event: Started, ID: o.ID, Value: p.pid})
	return nil
}

// collect waits for every child that is dead. It returns false when there is no child left, dead or alive.
func (g *guard) collect() bool {
	for {
		pid, status, some := proc.Collect()
		if pid == 0 {
			return some
		}
		for i, p := range g.running {
			if p.pid == pid {
				p.status = status
				g.running = slices.Delete(g.running, i, i+1)
				g.ended = append(g.ended, p)
				g.pause = 0
				break
			}
		}
	}
}

// clean kills what ended programs have left behind, and tells the host when nothing of it is left. Whatever child is not
// a running program was left behind: running programs keep their own orphans, see start.
func (g *guard) clean() {
	if len(g.ended) == 0 {
		return
	}
	// The list is complete: nobody but this thread waits for children, and it does not meanwhile.
	children, err := proc.Children(g.self)
	left := g.strangers(children)
	if err != nil || len(left) > 0 {
		// An error to list or to kill is met by trying again: there is nothing better to do, and no one to tell.
		g.kill(left)
		g.pause = g.pause.next()
		return
	}
	for _, p := range g.ended {
		p.close()
		answer(g.socket, Answer{Event: Ended, ID: p.id, Value: p.status})
	}
	g.ended = nil
}

// strangers are the children that are not running programs.
func (g *guard) strangers(children []int) []int {
	return slices.DeleteFunc(children, func(child int) bool {
		return slices.ContainsFunc(g.running, func(p *program) bool { return p.pid == child })
	})
}

// killAll returns when no descendant is left: each one whose parent dies becomes a child of this subreaper.
func (g *guard) killAll() {
	for wait := firstWait; g.collect(); wait = wait.next() {
		for _, p := range g.running {
			p.kill()
		}
		children, err := proc.Children(g.self)
		if err == nil && len(children) == 0 { // those of other threads, which should have none
			children, err = proc.ChildrenByParent(g.self)
		}
		_ = err // met by trying again, as in clean
		g.kill(children)
		t := wait.timespec()
		_ = syscall.Nanosleep(&t, nil) // a signal may cut it short
	}
}

// kill sends SIGKILL to children, which keep their IDs until they are collected, and to their process groups, whose
// members are descendants too: all share the guard's session, or one that a descendant has made.
func (g *guard) kill(children []int) {
	for _, pid := range children {
		p, err := proc.Read(pid)
		if err == nil && !p.Dead() && p.Group > 1 && !g.spares(p.Group) {
			_ = syscall.Kill(-p.Group, syscall.SIGKILL) // ESRCH if it has left that group since: the next line is for it
		}
		_ = syscall.Kill(pid, syscall.SIGKILL) // it cannot fail for a child
	}
}

// spares says whether a process group is the guard's own or that of a program that runs: any process of a session can
// move into each of its groups.
func (g *guard) spares(group int) bool {
	return group == g.self || slices.ContainsFunc(g.running, func(p *program) bool { return p.pid == group })
}

// kill ends a program that runs, with the group that it began with.
func (p *program) kill() {
	_ = syscall.Kill(-p.pid, syscall.SIGKILL) // ESRCH if nobody is in that group
	_ = syscall.Kill(p.pid, syscall.SIGKILL)  // it cannot fail for a child that is not collected
}

func (p *program) close() {
	for _, descriptor := range append([]int{p.handle}, p.kept...) {
		if descriptor >= 0 {
			_ = syscall.Close(descriptor) // nothing was written to it
		}
	}
}

// watch is a pidfd, or -1 before Linux 5.3.
func watch(pid int) int {
	const pidfdOpen = 434 // on every architecture
	handle, _, errno := syscall.Syscall(pidfdOpen, uintptr(pid), 0, 0)
	if errno != 0 {
		return -1
	}
	return int(handle)
}
