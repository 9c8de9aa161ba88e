package proctree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// stat is a part of proc_pid_stat(5).
type stat struct {
	name                                      string
	state                                     byte
	parent, group, session, terminal, threads int
}

// dead says that nothing of the process runs any more; its parent has not yet waited for it. The first thread of a
// process can be dead while others live.
func (s stat) dead() bool {
	return s.state == 0 || s.state == 'X' || s.state == 'Z' && s.threads <= 1
}

// readStat returns the zero value for a process that is gone, and for another user's where /proc hides those (hidepid,
// proc(5)).
func readStat(pid int) (stat, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) || errors.Is(err, fs.ErrPermission) {
		return stat{}, nil
	}
	if err != nil {
		return stat{}, err
	}
	return parseStat(string(data))
}

// parseStat reads the line of proc_pid_stat(5). The second field, the name in parentheses, may hold anything.
func parseStat(line string) (stat, error) {
	end := strings.LastIndexByte(line, ')')
	fields := strings.Fields(line[end+1:])
	const state, threads = 0, 17
	if end < 0 || len(fields) <= threads || len(fields[state]) != 1 || fields[state][0] < 'A' {
		return stat{}, errors.New("/proc/PID/stat does not have the form of proc_pid_stat(5)")
	}
	_, name, _ := strings.Cut(line[:end], "(")
	s := stat{name: name, state: fields[state][0]}
	for at, into := range map[int]*int{1: &s.parent, 2: &s.group, 3: &s.session, 4: &s.terminal, threads: &s.threads} {
		n, err := strconv.Atoi(fields[at])
		if err != nil {
			return stat{}, fmt.Errorf("field %d of /proc/PID/stat is not a number", at)
		}
		*into = n
	}
	return s, nil
}

// childrenOfThread lists what the first thread of this process, pid, has started or adopted. Dead ones that were not
// waited for are among them (proc_tid_children(5)). Kernels may be built without this list.
func childrenOfThread(pid int) ([]int, error) {
	id := strconv.Itoa(pid)
	data, err := os.ReadFile("/proc/" + id + "/task/" + id + "/children")
	if errors.Is(err, fs.ErrNotExist) {
		return childrenOf(pid)
	}
	var children []int
	for _, field := range strings.Fields(string(data)) {
		child, e := strconv.Atoi(field)
		if e != nil {
			return nil, errors.New("/proc/PID/task/TID/children does not have the form of proc_tid_children(5)")
		}
		children = append(children, child)
	}
	return children, err
}

// childrenOf looks through all of /proc for the processes whose parent is pid.
func childrenOf(pid int) (children []int, err error) {
	names, err := os.ReadDir("/proc")
	for _, name := range names {
		id, e := strconv.Atoi(name.Name())
		if e != nil {
			continue
		}
		s, e := readStat(id)
		if e == nil && s.state != 0 && s.parent == pid {
			children = append(children, id)
		}
		err = errors.Join(err, e)
	}
	return children, err
}
