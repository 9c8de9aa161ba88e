package guard

import (
	"errors"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"unsafe"
)

// start starts a program. It takes the descriptors over.
//
// The program becomes a child subreaper (prctl(2)) before it runs, which is why this is not syscall.ForkExec: what it
// orphans stays below it as long as it lives, and comes to the guard when it ends. So everything that a guard adopts was
// left behind by a program that has ended, and can be told from what the others, which go on, have started.
func start(o Order, descriptors []int) (*program, error) {
	c, err := prepare(o, descriptors)
	defer c.close()
	if err != nil {
		return nil, err
	}
	pid, errno := c.fork()
	runtime.KeepAlive(c)
	if errno != 0 {
		return nil, errno
	}
	if errno := c.result(); errno != 0 {
		return nil, errors.Join(errno, waitFor(int(pid)))
	}
	p := &program{id: o.ID, pid: int(pid), handle: watch(int(pid))}
	const streams = 3
	for i, descriptor := range c.files[:len(o.Files)] {
		if i >= streams && descriptor >= 0 {
			p.kept = append(p.kept, int(descriptor))
		}
	}
	c.given = p.kept
	return p, nil
}

// result is what the child could not do, or 0: its end of the pipe closes with its exec.
func (c *child) result() syscall.Errno {
	_ = syscall.Close(int(c.report)) // nothing was written to it
	c.report = -1
	var failure [lengthBytes]byte
	if err := readFull(c.outcome, failure[:]); err != nil {
		return 0
	}
	return syscall.Errno(number(failure[:]))
}

// waitFor collects a child that is on its way out.
func waitFor(pid int) error {
	for {
		_, err := syscall.Wait4(pid, nil, 0, nil)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// child is what a child needs between fork and exec: no memory can be had there.
type child struct {
	path, dir    *byte
	argv, envv   []*byte // ended by nil
	files        []int32 // descriptor i of the program, or -1
	report       int32   // takes the errno
	guard        uintptr // its process ID
	mask         uint64  // the signals that are blocked as long as nothing is being started
	owned        []int   // all descriptors of this value but report and outcome
	given        []int   // those of owned that somebody else closes
	outcome      int
	failure      [lengthBytes]byte
	everySignal  uint64
	defaultState [4]uint64 // a struct sigaction of the kernel's: SIG_DFL, no flags
}

func prepare(o Order, descriptors []int) (c *child, err error) {
	c = &child{guard: uintptr(syscall.Getpid()), report: -1, outcome: -1, owned: descriptors, everySignal: ^uint64(0)}
	// Above all numbers that the program's own descriptors get, so that none of these is overwritten.
	base := len(o.Files) + 1
	for i, descriptor := range c.owned {
		if c.owned[i], err = above(descriptor, base); err != nil {
			return c, err
		}
	}
	rest := c.owned
	for _, given := range o.Files {
		if !given {
			c.files = append(c.files, -1)
			continue
		}
		c.files = append(c.files, int32(rest[0]))
		rest = rest[1:]
	}
	path := o.Path
	if o.Opened {
		program := rest[0]
		if path, err = c.place(program, len(o.Files)); err != nil {
			return c, err
		}
	}
	var pipe [2]int
	if err := syscall.Pipe2(pipe[:], syscall.O_CLOEXEC); err != nil {
		return c, err
	}
	c.outcome = pipe[0]
	report, err := above(pipe[1], base)
	if err != nil {
		return c, err
	}
	c.report = int32(report)
	if c.path, err = syscall.BytePtrFromString(path); err != nil {
		return c, err
	}
	if o.Dir != "" {
		if c.dir, err = syscall.BytePtrFromString(o.Dir); err != nil {
			return c, err
		}
	}
	if c.argv, err = syscall.SlicePtrFromStrings(o.Arguments); err != nil {
		return c, err
	}
	c.envv, err = syscall.SlicePtrFromStrings(o.Environment)
	return c, err
}

// place is the path by which the open program is executed. The interpreter of a script opens the script by that name
// after the exec: so a script gets the number after the program's own descriptors, and anything else is closed.
func (c *child) place(program, next int) (string, error) {
	var magic [4]byte
	n, err := syscall.Pread(program, magic[:], 0)
	if err != nil {
		return "", err
	}
	if string(magic[:n]) != "\x7fELF" {
		c.files = append(c.files, int32(program))
		program = next
	}
	return "/proc/self/fd/" + strconv.Itoa(program), nil
}

// above moves a descriptor to a number that is not below base.
func above(descriptor, base int) (int, error) {
	if descriptor >= base {
		return descriptor, nil
	}
	moved, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(descriptor), syscall.F_DUPFD_CLOEXEC, uintptr(base))
	if errno != 0 {
		return descriptor, errno
	}
	return int(moved), syscall.Close(descriptor)
}

func (c *child) close() {
	for _, descriptor := range append([]int{int(c.report), c.outcome}, c.owned...) {
		if descriptor >= 0 && !slices.Contains(c.given, descriptor) {
			_ = syscall.Close(descriptor) // pipes, and files of the host, which keeps its own descriptors of them
		}
	}
}

// fork makes the child, which does not come back from here. In the child only this thread exists, and whatever lock
// another one held stays locked for ever: so from the fork on nothing happens but raw system calls, as in
// syscall.forkAndExecInChild. No signal reaches the child before its handlers, which are the Go runtime's, are gone.
//
//go:noinline
//go:norace
//go:nocheckptr
func (c *child) fork() (pid uintptr, errno syscall.Errno) {
	const (
		setMask, maskBytes, lastSignal = 2, 8, 64
		cannotExecute                  = 126
	)
	_, _, errno = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setMask,
		uintptr(unsafe.Pointer(&c.everySignal)), uintptr(unsafe.Pointer(&c.mask)), maskBytes, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	pid, _, errno = syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setMask, uintptr(unsafe.Pointer(&c.mask)), 0, maskBytes, 0, 0)
		return pid, errno
	}

	// Not a session: the guard's has no terminal either, and to the kernel each session is a party of its own that
	// competes for the processors (CONFIG_SCHED_AUTOGROUP), which costs a millisecond for each program.
	if _, _, errno = syscall.RawSyscall(syscall.SYS_SETPGID, 0, 0, 0); errno != 0 {
		goto failed
	}
	if _, _, errno = syscall.RawSyscall6(syscall.SYS_PRCTL, setChildSubreaper, 1, 0, 0, 0, 0); errno != 0 {
		goto failed
	}
	// Tied to the thread that starts the program: the guard has its main thread do that, which ends with the process.
	if _, _, errno = syscall.RawSyscall6(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0, 0); errno != 0 {
		goto failed
	}
	if parent, _, _ := syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0); parent != c.guard {
		errno = syscall.ESRCH // the guard died before the line above
		goto failed
	}
	if c.dir != nil {
		if _, _, errno = syscall.RawSyscall(syscall.SYS_CHDIR, uintptr(unsafe.Pointer(c.dir)), 0, 0); errno != 0 {
			goto failed
		}
	}
	for i := range c.files {
		if c.files[i] < 0 {
			_, _, _ = syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(i), 0, 0)
			continue
		}
		if _, _, errno = syscall.RawSyscall(syscall.SYS_DUP3, uintptr(c.files[i]), uintptr(i), 0); errno != 0 {
			goto failed
		}
	}
	for s := uintptr(1); s <= lastSignal; s++ {
		// SIGKILL and SIGSTOP cannot be set, and need not be.
		_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, s, uintptr(unsafe.Pointer(&c.defaultState)), 0, maskBytes, 0, 0)
	}
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setMask, uintptr(unsafe.Pointer(&c.mask)), 0, maskBytes, 0, 0)
	_, _, errno = syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(c.path)),
		uintptr(unsafe.Pointer(&c.argv[0])), uintptr(unsafe.Pointer(&c.envv[0])))

failed:
	c.failure[0], c.failure[1] = byte(errno>>24), byte(errno>>16)
	c.failure[2], c.failure[3] = byte(errno>>8), byte(errno)
	_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, uintptr(c.report), uintptr(unsafe.Pointer(&c.failure)), lengthBytes)
	for {
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, cannotExecute, 0, 0)
	}
}
