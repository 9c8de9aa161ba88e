package nodes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// startHeld starts a command that has a death signal and watches it until it ends. The signal fires when the starting
// thread ends, so that thread is held as long as the command runs. ended gets what Wait returned.
func startHeld(cmd *exec.Cmd, started func(), ended func(error)) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			started()
		}
		result <- err
		if err == nil {
			ended(cmd.Wait())
		}
	}()
	return <-result
}

type mountPoint struct{ point, fstype string }

// readMounts lists the mounts of this process, in the order in which they were made, see proc_pid_mountinfo(5).
func readMounts() ([]mountPoint, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var all []mountPoint
	for line := range strings.Lines(string(text)) {
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 1 {
			return nil, fmt.Errorf("mountinfo: unexpected line %q", line)
		}
		all = append(all, mountPoint{point: unescape.Replace(left[4]), fstype: right[0]})
	}
	return all, nil
}

func thisProcess() (process, error) { return processOf(strconv.Itoa(os.Getpid())) }

// processOf identifies a process by its number. The name in the second field may hold spaces and parentheses.
func processOf(pid string) (process, error) {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return process{}, err
	}
	const startField = 22
	_, after, _ := cutLast(string(text), ") ")
	fields := strings.Fields(after) // from field 3 on
	if len(fields) < startField-2 {
		return process{}, fmt.Errorf("/proc/%s/stat: unexpected form", pid)
	}
	return process{pid: pid, start: fields[startField-3]}, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// alive distinguishes a process from a later one of the same number. A process that cannot be inspected is alive.
func (p process) alive() bool {
	now, err := processOf(p.pid)
	if err != nil {
		return !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ESRCH)
	}
	return now == p
}
