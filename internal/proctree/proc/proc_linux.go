// Package proc tells what proc(5) says of processes.
//
// It imports next to nothing: the guard of internal/proctree uses it before packages such as os are initialised, and is
// itself initialised after all that it imports. Even bytes would make it wait for os, by way of unicode.
package proc

import (
	"errors"
	"strconv"
	"syscall"
)

// Process is what proc_pid_stat(5) says of one.
type Process struct {
	State                           byte
	Parent, Group, Session, Threads int
}

// Dead says that nothing of it runs any more; its parent has not yet waited for it.
// The first thread of a process can be dead while others live.
func (p Process) Dead() bool {
	return p.State == 0 || p.State == 'X' || p.State == 'Z' && p.Threads <= 1
}

// Read returns a process without state for one that is gone, and for another user's where /proc hides those (hidepid,
// proc(5)).
func Read(pid int) (Process, error) {
	data, err := readFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) {
		return Process{}, nil
	}
	if err != nil {
		return Process{}, err
	}
	return parseStat(data)
}

// parseStat reads the line of proc_pid_stat(5). The second field, the name in parentheses, may hold anything.
func parseStat(data []byte) (Process, error) {
	end := len(data) - 1
	for end >= 0 && data[end] != ')' {
		end--
	}
	fields := fields(data[end+1:])
	const state, parent, group, session, threads = 0, 1, 2, 3, 17
	if end < 0 || len(fields) <= threads || len(fields[state]) != 1 {
		return Process{}, errors.New("/proc/PID/stat has not the form of proc_pid_stat(5)")
	}
	p := Process{State: fields[state][0]}
	for _, f := range []struct {
		at   int
		into *int
	}{{parent, &p.Parent}, {group, &p.Group}, {session, &p.Session}, {threads, &p.Threads}} {
		n, err := strconv.Atoi(fields[f.at])
		if err != nil {
			return Process{}, errors.New("/proc/PID/stat has a field that is not the number of proc_pid_stat(5)")
		}
		*f.into = n
	}
	return p, nil
}

// fields are what stands between blanks.
func fields(data []byte) (all []string) {
	begin := 0
	for i := 0; i <= len(data); i++ {
		if i < len(data) && data[i] != ' ' && data[i] != '\n' {
			continue
		}
		if i > begin {
			all = append(all, string(data[begin:i]))
		}
		begin = i + 1
	}
	return all
}

// Each goes through /proc in its order, which is that of the IDs, and on after an error.
func Each(visit func(pid int) error) error {
	directory, err := open("/proc", syscall.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(directory) }() // only read from
	var failures []error
	buffer := make([]byte, 8<<10)
	for {
		n, err := syscall.ReadDirent(directory, buffer)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return errors.Join(append(failures, err)...)
		}
		_, _, names := syscall.ParseDirent(buffer[:n], -1, nil)
		for _, name := range names {
			if pid, err := strconv.Atoi(name); err == nil {
				failures = append(failures, visit(pid))
			}
		}
	}
}

// Children are the processes that the first thread of pid, which must be this process, has started or adopted. What is
// orphaned comes to the first thread as long as that lives. Dead ones that nobody has waited for are among them. None
// is missing unless one was waited for meanwhile (proc_tid_children(5)).
//
// Kernels may be built without this list: then all of /proc is looked through.
func Children(pid int) ([]int, error) {
	id := strconv.Itoa(pid)
	data, err := readFile("/proc/" + id + "/task/" + id + "/children")
	if errors.Is(err, syscall.ENOENT) {
		return ChildrenByParent(pid)
	}
	if err != nil {
		return nil, err
	}
	var children []int
	for _, field := range fields(data) {
		child, err := strconv.Atoi(field)
		if err != nil {
			return nil, errors.New("/proc/PID/task/TID/children has not the form of proc_tid_children(5)")
		}
		children = append(children, child)
	}
	return children, nil
}

// ChildrenByParent looks through all of /proc for the processes whose parent is pid.
func ChildrenByParent(pid int) (children []int, err error) {
	err = Each(func(id int) error {
		p, err := Read(id)
		if err == nil && p.State != 0 && p.Parent == pid {
			children = append(children, id)
		}
		return err
	})
	return children, err
}

// Collect waits for one child that is dead. Its status is the exit status, or 128 and the number of the signal that ended
// it. Without a dead child pid is 0, and some says whether there is a child that lives.
func Collect() (pid, status int, some bool) {
	for {
		var w syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &w, syscall.WNOHANG|syscall.WALL, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return 0, 0, false
		case w.Signaled():
			return pid, exitSignal + int(w.Signal()), true
		}
		return pid, w.ExitStatus(), true
	}
}

// exitSignal and the number of a signal are the exit status of what the signal ended, as shells have it.
const exitSignal = 128

func open(path string, flags int) (int, error) {
	for {
		descriptor, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC|flags, 0)
		if !errors.Is(err, syscall.EINTR) {
			return descriptor, err
		}
	}
}

func readFile(path string) ([]byte, error) {
	file, err := open(path, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = syscall.Close(file) }() // only read from
	data := make([]byte, 0, 512)
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := syscall.Read(file, data[len(data):cap(data)])
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return data, err
		}
		data = data[:len(data)+n]
	}
}
