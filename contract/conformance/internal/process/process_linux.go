package process

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/contract/launch"
)

// startProcess starts a process from a thread of its own. The thread has its own umask, which so has no effect on other
// threads, and lives as long as the process, whose death signal is sent when the thread ends (PR_SET_PDEATHSIG).
func startProcess(ctx context.Context, umask int, o launch.Options) (*launch.Process, func(), error) {
	o.Command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	script, err := withoutPath(o.Command)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = script.Close() }() // nil for a program
	type launched struct {
		process *launch.Process
		err     error
	}
	ready, over := make(chan launched, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and its umask with it
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			ready <- launched{err: fmt.Errorf("get a umask of its own for a thread: %w", err)}
			return
		}
		unix.Umask(umask)
		process, err := launch.Start(ctx, o)
		ready <- launched{process, err}
		if err == nil {
			<-over
		}
	}()
	got := <-ready
	return got.process, func() { close(over) }, got.err
}

// withoutPath makes a command start a script as the runtime does (SPEC H-5): the interpreter gets /proc/self/fd/4 instead of the path of the
// script, because descriptor 3 is the lock. It returns the open script, which the caller closes after the start, and nil for another program.
func withoutPath(c *exec.Cmd) (*os.File, error) {
	file, err := os.Open(c.Path)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // the start says why it is no program
	}
	var magic [2]byte
	if _, err := io.ReadFull(file, magic[:]); err != nil || string(magic[:]) != "#!" {
		return nil, file.Close()
	}
	const first = 3 // behind standard input, output and error
	c.ExtraFiles = []*os.File{nil, file}
	c.Path = "/proc/self/fd/" + strconv.Itoa(first+len(c.ExtraFiles)-1)
	return file, nil
}

// CanSetUmask reports whether startProcess sets the umask.
const CanSetUmask = true

// Freeze stops all threads of a process.
func Freeze(pid int) error { return unix.Kill(pid, unix.SIGSTOP) }

// Thaw resumes a process that Freeze stopped.
func Thaw(pid int) error { return unix.Kill(pid, unix.SIGCONT) }

// Lock takes the lock of flock(2) on a file that no other process has locked.
func Lock(file *os.File) error { return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// CanLock reports whether Lock works.
const CanLock = true

// CanFreeze reports whether Freeze and Thaw work.
const CanFreeze = true

// stat is a part of proc_pid_stat(5).
type stat struct {
	parent, group int
	start         string // start time, which distinguishes it from another process with the same ID
	reaped        uint64 // minor faults of the children that it has waited for
}

// Relatives are processes by their IDs.
type Relatives map[int]stat

// Family returns a plugin, its descendants, and the orphans in its process group.
func Family(pid int) Relatives {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	all, children := Relatives{}, map[int][]int{}
	for _, n := range names {
		if id, err := strconv.Atoi(n.Name()); err == nil {
			if s, ok := readStat(id); ok {
				all[id] = s
				children[s.parent] = append(children[s.parent], id)
			}
		}
	}
	out := Relatives{}
	next := []int{pid}
	for id, s := range all {
		if s.group == pid {
			next = append(next, id)
		}
	}
	for len(next) > 0 {
		id := next[0]
		next = next[1:]
		if _, known := out[id]; known {
			continue
		}
		if s, there := all[id]; there {
			out[id] = s
			next = append(next, children[id]...)
		}
	}
	return out
}

// InMachineOf returns the other processes of the mount namespace of a process.
func InMachineOf(pid int) Relatives {
	namespace := func(pid int) string {
		name, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/mnt") // "" for one that has ended
		return name
	}
	mine, out := namespace(pid), Relatives{}
	names, err := os.ReadDir("/proc")
	if err != nil || mine == "" {
		return out
	}
	for _, n := range names {
		id, err := strconv.Atoi(n.Name())
		if err != nil || id == pid || namespace(id) != mine {
			continue
		}
		if s, ok := readStat(id); ok {
			out[id] = s
		}
	}
	return out
}

// Count is the number of processes.
func (r Relatives) Count() int { return len(r) }

// Kill sends SIGKILL to the processes that have not been replaced by others.
func (r Relatives) Kill() {
	for id, was := range r {
		if now, ok := readStat(id); ok && now.start == was.start {
			_ = unix.Kill(id, unix.SIGKILL) // it may have ended
		}
	}
}

func readStat(pid int) (stat, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, false
	}
	_, after, ok := bytes.Cut(data[max(0, bytes.LastIndexByte(data, ')')):], []byte(" "))
	fields := bytes.Fields(after)
	const parent, group, reaped, start = 1, 2, 8, 19 // counted from the state, which is field 3 there
	if !ok || len(fields) <= start {
		return stat{}, false
	}
	s := stat{start: string(fields[start])}
	if s.parent, err = strconv.Atoi(string(fields[parent])); err != nil {
		return stat{}, false
	}
	if s.group, err = strconv.Atoi(string(fields[group])); err != nil {
		return stat{}, false
	}
	s.reaped, err = strconv.ParseUint(string(fields[reaped]), 10, 64)
	return s, err == nil
}

// CanCount reports whether Grew works.
const CanCount = true

// Grew reports whether processes were started since before. The page faults of a process that has ended are added to those
// of its parent's waited-for children, and no program runs without one: so this finds every child that was waited for,
// however short its life; any other still exists, as a zombie at least.
func (r Relatives) Grew(before Relatives) bool {
	for id, s := range r {
		if was, known := before[id]; !known || s.start != was.start || s.reaped > was.reaped {
			return true
		}
	}
	return false
}

// Shown returns what other users can read: arguments and environments.
func (r Relatives) Shown() []byte {
	var out []byte
	for id := range r {
		for _, file := range []string{"cmdline", "environ"} {
			// A process that has ended, or that denies access, shows nothing.
			if data, err := os.ReadFile("/proc/" + strconv.Itoa(id) + "/" + file); err == nil {
				out = append(append(out, data...), 0)
			}
		}
	}
	return out
}
