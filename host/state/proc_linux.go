package state

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// holders returns the processes that hold a lock, and the one that took it. It omits those that this user cannot inspect.
//
// For an open file with a lock, /proc/PID/fdinfo of every process that inherited it names the process that took it:
// "lock: 1: FLOCK ADVISORY WRITE 4242 00:1a:77 0 EOF" (proc_pid_fdinfo(5)).
func holders(lock *os.File) (all []Process, taker int) {
	var st unix.Stat_t
	if err := unix.Fstat(int(lock.Fd()), &st); err != nil { //nolint:gosec // a descriptor fits an int
		return nil, 0
	}
	infos, err := filepath.Glob("/proc/[0-9]*/fdinfo/[0-9]*")
	if err != nil {
		return nil, 0
	}
	for _, info := range infos {
		f := lockLine(info, func(f []string) bool { return len(f) >= 6 && f[0] == "lock:" && f[2] == "FLOCK" })
		if f == nil {
			continue
		}
		parts := strings.Split(info, "/") // "", proc, PID, fdinfo, FD
		pid, err := strconv.Atoi(parts[2])
		by, takerErr := strconv.Atoi(f[5])
		var held unix.Stat_t
		err = errors.Join(err, takerErr, unix.Stat(filepath.Join("/proc", parts[2], "fd", parts[4]), &held))
		if err != nil || held.Dev != st.Dev || held.Ino != st.Ino ||
			slices.ContainsFunc(all, func(p Process) bool { return p.PID == pid }) {
			continue
		}
		all, taker = append(all, Process{PID: pid, Command: commandOf(pid)}), by
	}
	return all, taker
}

// hidden reports whether a process lives whose open files this user may not see. A run that is not root's is such a process even for the
// user who started it (proctree.NoCoreDumps).
func hidden(pid int) bool {
	_, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "fd"))
	return errors.Is(err, fs.ErrPermission)
}

// listed reports whether /proc/locks, which every user may read, contains the lock. Source: proc_locks(5).
func listed(path string) bool {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return false
	}
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	return lockLine("/proc/locks", func(f []string) bool { // 1: FLOCK  ADVISORY  WRITE 4242 00:1a:77 0 EOF
		return len(f) >= 6 && f[1] == "FLOCK" && f[3] == "WRITE" && f[5] == file
	}) != nil
}

// lockLine returns the fields of the first matching line of a file in /proc.
func lockLine(path string, matches func(fields []string) bool) []string {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }() // opened for reading only
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if f := strings.Fields(lines.Text()); matches(f) {
			return f
		}
	}
	return nil
}

// commandOf returns the command line of a process, or its name in brackets if it has none.
func commandOf(pid int) string {
	dir := "/proc/" + strconv.Itoa(pid)
	line, err := os.ReadFile(dir + "/cmdline")
	if err == nil && len(line) > 0 {
		const maxBytes = 200
		line = line[:min(len(line), maxBytes)]
		return strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))
	}
	name, _ := os.ReadFile(dir + "/comm") // empty for an ended process
	return "[" + strings.TrimSpace(string(name)) + "]"
}
