package state

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// holders are the processes that hold a lock, and the one that took it. What may not be looked at is left out.
//
// An open file that holds a lock says so in /proc/PID/fdinfo, with the process that took it, in every process that
// inherited it: "lock: 1: FLOCK ADVISORY WRITE 4242 00:1a:77 0 EOF" (proc_pid_fdinfo(5)).
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
		by, holds := lockTaker(info)
		if !holds {
			continue
		}
		parts := strings.Split(info, "/") // "", proc, PID, fdinfo, FD
		pid, err := strconv.Atoi(parts[2])
		var held unix.Stat_t
		err = errors.Join(err, unix.Stat(filepath.Join("/proc", parts[2], "fd", parts[4]), &held))
		if err != nil || held.Dev != st.Dev || held.Ino != st.Ino ||
			slices.ContainsFunc(all, func(p Process) bool { return p.PID == pid }) {
			continue
		}
		all, taker = append(all, Process{PID: pid, Command: commandOf(pid)}), by
	}
	return all, taker
}

// lockTaker reads which process took the lock that an open file holds.
func lockTaker(info string) (pid int, holds bool) {
	file, err := os.Open(info)
	if err != nil {
		return 0, false
	}
	defer func() { _ = file.Close() }() // only read from
	for lines := bufio.NewScanner(file); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) >= 6 && f[0] == "lock:" && f[2] == "FLOCK" {
			pid, err := strconv.Atoi(f[5])
			return pid, err == nil
		}
	}
	return 0, false
}

// commandOf is the command line of a process, or its name in brackets where it has none.
func commandOf(pid int) string {
	dir := "/proc/" + strconv.Itoa(pid)
	line, err := os.ReadFile(dir + "/cmdline")
	if err == nil && len(line) > 0 {
		const enough = 200
		line = line[:min(len(line), enough)]
		return strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))
	}
	name, _ := os.ReadFile(dir + "/comm") // empty for one that is gone
	return "[" + strings.TrimSpace(string(name)) + "]"
}
