package proctree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"
)

// pause is the time between two rounds of killing: short, since most processes die at once, and then longer, for one
// that hangs in the kernel.
type pause time.Duration

const (
	firstWait = pause(500 * time.Microsecond)
	lastWait  = pause(50 * time.Millisecond)
)

func (p pause) next() pause { return min(2*p, lastWait) }
func (p pause) sleep()      { time.Sleep(time.Duration(p)) }

// waiter collects the children of this process. One of them may be of interest.
type waiter struct {
	child  int // its process ID, 0 once it was collected
	status int // its exit status, or 128 and the number of the signal that ended it
}

// reap collects every dead child. It returns false when there is no child left, dead or alive.
func (w *waiter) reap() bool {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG|syscall.WALL, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return false
		case pid == 0:
			return true
		case pid != w.child:
			continue
		}
		w.child = 0
		w.status = status.ExitStatus()
		if status.Signaled() {
			w.status = exitSignal + int(status.Signal())
		}
	}
}

// killChildren sends SIGKILL to every living child of this process and to the process groups of those that have a
// session of their own, each as soon as it is seen, so that a child that keeps replacing itself is caught. Whoever made
// such a session is a descendant, and so are all members of its groups.
// It returns the children that were alive. Children whose parents die by it show up in the next round.
func killChildren() (alive []int, err error) {
	self := os.Getpid()
	own, err := readProcess(self)
	if err != nil {
		return nil, err
	}
	err = eachProcess(func(pid int) error {
		p, err := readProcess(pid)
		if err != nil || p.parent != self || p.dead() {
			return err
		}
		alive = append(alive, pid)
		if p.session != own.session && p.group > 1 {
			// ESRCH if the child just died or moved to another group: the next line or round is for that.
			_ = syscall.Kill(-p.group, syscall.SIGKILL)
		}
		return killChild(self, pid)
	})
	return alive, err
}

// killChild makes sure that pid is still the child: it may have been waited for, and its number given away, meanwhile.
func killChild(self, pid int) error {
	handle, err := os.FindProcess(pid) // a pidfd where the kernel has them, which cannot change its process
	if err != nil {
		return err
	}
	p, err := readProcess(pid)
	if err == nil && p.parent == self {
		if err = handle.Kill(); errors.Is(err, os.ErrProcessDone) {
			err = nil
		}
	}
	return errors.Join(err, handle.Release())
}

// eachProcess goes through /proc in its order, which is that of the IDs, and on after an error.
func eachProcess(visit func(pid int) error) (err error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, proc.Close()) }()
	var failures []error
	for {
		names, err := proc.Readdirnames(64)
		for _, name := range names {
			if pid, err := strconv.Atoi(name); err == nil {
				failures = append(failures, visit(pid))
			}
		}
		if errors.Is(err, io.EOF) {
			return errors.Join(failures...)
		}
		if err != nil {
			return errors.Join(append(failures, err)...)
		}
	}
}

// process is what proc_pid_stat(5) says of one.
type process struct {
	state                           byte
	parent, group, session, threads int
}

// dead: nothing of it runs any more; its parent has not yet waited for it.
// The first thread of a process can be dead while others live.
func (p process) dead() bool {
	return p.state == 0 || p.state == 'X' || p.state == 'Z' && p.threads <= 1
}

// readProcess returns a process without state for one that is gone, and for another user's where /proc hides those
// (hidepid, proc(5)).
func readProcess(pid int) (process, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) || errors.Is(err, os.ErrPermission) {
		return process{}, nil
	}
	if err != nil {
		return process{}, err
	}
	return parseStat(data)
}

// parseStat reads the line of proc_pid_stat(5). The second field, the name in parentheses, may hold anything.
func parseStat(data []byte) (process, error) {
	end := bytes.LastIndexByte(data, ')')
	fields := bytes.Fields(data[end+1:])
	const state, parent, group, session, threads = 0, 1, 2, 3, 17
	if end < 0 || len(fields) <= threads || len(fields[state]) != 1 {
		return process{}, errors.New("/proc/PID/stat has not the form of proc_pid_stat(5)")
	}
	p := process{state: fields[state][0]}
	for _, f := range []struct {
		at   int
		into *int
	}{{parent, &p.parent}, {group, &p.group}, {session, &p.session}, {threads, &p.threads}} {
		n, err := strconv.Atoi(string(fields[f.at]))
		if err != nil {
			return process{}, fmt.Errorf("/proc/PID/stat: field %d: %w", f.at+3, err)
		}
		*f.into = n
	}
	return p, nil
}
