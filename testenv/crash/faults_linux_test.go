package crash

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	needs "github.com/machineadm/machineadm/internal/require"
)

// trapVariable is the path of a socket. With it the test binary installs a seccomp filter, sends the filter's listener
// (seccomp_unotify(2)) to that socket and becomes the program of its arguments.
const trapVariable = "CRASH_TRAP"

// watched are the system calls that change files. openat is one of them when it can write.
var watched = []uint32{
	unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_FTRUNCATE, unix.SYS_RENAMEAT,
	unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_SYMLINKAT, unix.SYS_UNLINKAT, unix.SYS_MKDIRAT, unix.SYS_FCHMOD,
	unix.SYS_FCHMODAT, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_FSETXATTR, unix.SYS_COPY_FILE_RANGE,
}

// becomeTrapped returns only with an error.
func becomeTrapped(socket string, argv []string) error {
	runtime.LockOSThread() // the filter belongs to the thread, which the program keeps
	conn, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(conn, &unix.SockaddrUnix{Name: socket}); err != nil {
		return fmt.Errorf("connect to %s: %w", socket, err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := watch()
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]} //nolint:gosec // a few dozen
	listener, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER,
		uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	// From here on the thread's writes wait for the listener.
	if err := unix.Sendmsg(conn, []byte{0}, unix.UnixRights(int(listener)), nil, 0); err != nil { //nolint:gosec // a descriptor fits an int
		return err
	}
	environment := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, trapVariable+"=") })
	return syscall.Exec(argv[0], argv, environment)
}

// watch is the filter of seccomp(2) that notifies the listener of the watched calls and allows the others.
func watch() []unix.SockFilter {
	const number, openFlags = 0, 16 + 2*8 // struct seccomp_data; the low half of the third argument
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	filter := []unix.SockFilter{load(number)}
	for _, call := range watched {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 1}, answer(unix.SECCOMP_RET_USER_NOTIF))
	}
	return append(filter,
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_OPENAT, Jf: 3},
		load(openFlags),
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: unix.O_ACCMODE | unix.O_CREAT, Jf: 1},
		answer(unix.SECCOMP_RET_USER_NOTIF),
		answer(unix.SECCOMP_RET_ALLOW))
}

// notification and response are struct seccomp_notif and seccomp_notif_resp.
type notification struct {
	id         uint64
	pid, flags uint32
	number     int32
	arch       uint32
	ip         uint64
	arguments  [6]uint64
}

type response struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// aim is the call that a trap hits: the one with the number at fails with errno, or its process is killed (errno 0).
type aim struct {
	at    int // 0 only counts
	errno unix.Errno
	// within is a part of the path of the calls that count; empty for all.
	within string
}

// trap counts the calls of a run that change files, and hits one.
type trap struct {
	aim
	calls    int
	hit      string   // what was hit; empty for a run with fewer calls
	order    []string // the calls that make names, and those that make them durable
	done     chan struct{}
	listener *net.UnixListener
	err      error
}

// setTrap waits for the run at a socket.
func setTrap(t testing.TB, socket string, a aim) *trap {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
	if err != nil {
		t.Fatal(err)
	}
	p := &trap{aim: a, done: make(chan struct{}), listener: listener}
	go func() {
		defer close(p.done)
		p.err = p.serve()
	}()
	return p
}

// close waits for the end of all processes under the filter.
func (p *trap) close(t testing.TB) {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(2 * waitLimit):
		t.Fatal("the trap: a process under the filter does not end")
	}
	if p.err != nil {
		t.Errorf("the trap: %v", p.err)
	}
}

func (p *trap) serve() (err error) {
	defer func() { err = errors.Join(err, p.listener.Close()) }()
	if err := p.listener.SetDeadline(time.Now().Add(waitLimit)); err != nil {
		return err
	}
	conn, err := p.listener.AcceptUnix()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(make([]byte, 1), control)
	if err != nil {
		return err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return fmt.Errorf("no listener: %w", err)
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(files) != 1 {
		return fmt.Errorf("no listener: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Close(files[0])) }()
	return p.watch(files[0])
}

func (p *trap) watch(fd int) error {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}} //nolint:gosec // a descriptor
	for {
		if _, err := unix.Poll(poll, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if poll[0].Revents&unix.POLLIN == 0 {
			if poll[0].Revents&unix.POLLHUP != 0 {
				return nil
			}
			continue
		}
		var n notification
		if errno := ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); errno != 0 {
			if errno == unix.ENOENT || errno == unix.EINTR { // a signal came first: the call is made again
				continue
			}
			return errno
		}
		if err := p.answer(fd, n); err != nil {
			return err
		}
	}
}

func (p *trap) answer(fd int, n notification) error {
	r := response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	what := ""
	if p.counts(n) && (p.within == "" || strings.Contains(pathOf(n), p.within)) {
		p.record(n)
		if p.calls++; p.calls == p.at {
			what = describe(n)
			if p.errno != 0 {
				r.flags, r.errno = 0, -int32(p.errno) //nolint:gosec // a small number
			} else if err := unix.Kill(int(n.pid), unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
	errno := ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
	switch {
	case errno == unix.ENOENT && r.errno != 0: // a signal came first: the call is made again
		p.calls--
	case errno != 0 && errno != unix.ENOENT:
		return errno
	case what != "":
		p.hit = what
	}
	return nil
}

// counts reports whether a call can change a file: a write to a pipe, a socket or an eventfd, which has no path but the mode of
// a regular file, cannot.
func (p *trap) counts(n notification) bool {
	if n.number != unix.SYS_WRITE && n.number != unix.SYS_PWRITE64 {
		return true
	}
	link := filepath.Join("/proc", strconv.Itoa(int(n.pid)), "fd", strconv.FormatUint(n.arguments[0], 10))
	path, err := os.Readlink(link)
	info, statErr := os.Stat(link)
	return err == nil && statErr == nil && strings.HasPrefix(path, "/") && info.Mode().IsRegular()
}

// pathOf returns the path of a call, or of its directory: that of its descriptor, or its first name.
func pathOf(n notification) string {
	process := filepath.Join("/proc", strconv.Itoa(int(n.pid)))
	path, _ := os.Readlink(filepath.Join(process, "fd", strconv.FormatUint(n.arguments[0], 10))) // none for AT_FDCWD
	switch n.number {
	case unix.SYS_OPENAT, unix.SYS_MKDIRAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_FCHMODAT, unix.SYS_FCHOWNAT:
	default:
		return path
	}
	memory, err := os.Open(filepath.Join(process, "mem"))
	if err != nil {
		return path
	}
	defer func() { _ = memory.Close() }() // never written
	text := make([]byte, 256)
	got, _ := memory.ReadAt(text, int64(n.arguments[1])) //nolint:gosec // an address of user space
	name, _, _ := strings.Cut(string(text[:got]), "\x00")
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(path, name)
}

// record appends "mkdir DIR", "rename DIR" or "fsync FILE". A directory is taken from the call's descriptor, if it has one.
func (p *trap) record(n notification) {
	name := map[int32]string{unix.SYS_MKDIRAT: "mkdir ", unix.SYS_RENAMEAT: "rename ", unix.SYS_RENAMEAT2: "rename ", unix.SYS_FSYNC: "fsync "}[n.number]
	if name != "" {
		at, _ := os.Readlink(filepath.Join("/proc", strconv.Itoa(int(n.pid)), "fd", strconv.Itoa(int(int32(n.arguments[0]))))) //nolint:gosec // a descriptor, or AT_FDCWD
		p.order = append(p.order, name+at)
	}
}

func describe(n notification) string {
	p, _ := readProcess(int(n.pid))
	if len(p.arguments) == 0 {
		p.arguments = []string{"?"}
	}
	return fmt.Sprintf("system call %d of %s", n.number, p.program())
}

func ioctl(fd int, request uintptr, argument unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument)) //nolint:gosec // a descriptor
	return errno
}

// TestTrap: each of the two calls by which a shell makes a file, counted, failing and killing.
func TestTrap(t *testing.T) {
	t.Parallel()
	needs.Tier(t, needs.System)
	for name, tt := range map[string]struct {
		aim
		exit      int
		file, hit string
	}{
		"counts":      {aim{}, 0, "a\n", ""},
		"no file":     {aim{at: 1, errno: unix.EIO}, 2, "none", fmt.Sprintf("system call %d of sh", unix.SYS_OPENAT)},
		"no content":  {aim{at: 2, errno: unix.ENOSPC}, 1, "", fmt.Sprintf("system call %d of sh", unix.SYS_WRITE)},
		"killed":      {aim{at: 2}, -1, "", fmt.Sprintf("system call %d of sh", unix.SYS_WRITE)},
		"never comes": {aim{at: 3, errno: unix.EIO}, 0, "a\n", ""},
		"within":      {aim{at: 2, within: "/file"}, -1, "", fmt.Sprintf("system call %d of sh", unix.SYS_WRITE)},
		"elsewhere":   {aim{at: 1, within: "/another"}, 0, "a\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp(built, "") //nolint:usetesting // the name of t.TempDir is too long for a socket
			require.NoError(t, err)
			socket, file := filepath.Join(dir, "trap"), filepath.Join(dir, "file")
			p := setTrap(t, socket, tt.aim)
			c := exec.CommandContext(t.Context(), "/proc/self/exe", "/bin/sh", "-c", `echo a >"$1"`, "sh", file)
			c.Env = []string{trapVariable + "=" + socket}
			_ = c.Run() // its exit code is compared
			p.close(t)
			text, err := os.ReadFile(file)
			if err != nil {
				text = []byte("none")
			}
			assert.Equal(t, tt.exit, c.ProcessState.ExitCode())
			assert.Equal(t, tt.file, string(text))
			assert.Equal(t, tt.hit, p.hit)
		})
	}
}
