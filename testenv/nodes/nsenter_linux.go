package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const nodePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// outputGrace is how long a command's children may hold its outputs after it ended.
const outputGrace = 2 * time.Second

func (m *nspawn) exec(ctx context.Context, c command) (exit int, err error) {
	s, group, err := m.place()
	if err != nil {
		return 0, err
	}
	dir, err := group.open()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	// A group that still has children of the command stays, and goes with the node.
	defer os.Remove(string(group)) //nolint:errcheck // see above

	into := []string{"--target=" + s.leader, "--mount", "--uts", "--ipc", "--net", "--cgroup", "--root", "--wd", "--"}
	// nsenter keeps all capabilities of the host's root, with which a command could set the machine's clock. The node's
	// filter of system calls does not apply to it.
	into = append(into, "setpriv", "--bounding-set="+s.bounds, "--")
	cmd := exec.CommandContext(ctx, "nsenter", append(into, c.argv...)...)
	cmd.Env = []string{"PATH=" + nodePath, "HOME=/root", "LANG=C.UTF-8", "TERM=dumb"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.stdin, c.stdout, c.stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	cmd.Cancel = group.kill
	cmd.WaitDelay = outputGrace
	if err := startInPIDNamespace(cmd, s.leader); err != nil {
		return 0, err
	}
	err = cmd.Wait()
	var status *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case errors.Is(err, exec.ErrWaitDelay):
		return 0, fmt.Errorf("it ended, but left a process that holds its stdout or stderr: %w", err)
	case !errors.As(err, &status):
		return 0, err
	case !m.state().on():
		return 0, errOff
	}
	if ws, ok := status.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), nil
	}
	return status.ExitCode(), nil
}

// startInPIDNamespace starts a command as this process's child and a member of another process's pid namespace.
// nsenter(1) could enter it as well, but would stay in between and stop itself when its child is stopped; systemd stops
// every process when it shuts down, then waits until that child is reaped.
func startInPIDNamespace(cmd *exec.Cmd, member string) error {
	return inNamespace("/proc/"+member+"/ns/pid", "/proc/thread-self/ns/pid_for_children", unix.CLONE_NEWPID, cmd.Start)
}

// place makes a control group for one command, inside the part of the node's group that the node itself sees.
func (m *nspawn) place() (*session, cgroup, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.last
	if !s.state().on() || s.leader == "" {
		return nil, "", errOff
	}
	m.runs++
	group := cgroup(filepath.Join(string(s.group), "payload", fmt.Sprintf("testenv-exec-%d", m.runs)))
	return s, group, group.make()
}

// boundingSet is the capability bounding set of a process without CAP_SYS_TIME, in the format of setpriv(1).
func boundingSet(pid string) (string, error) {
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(status)) {
		if hex, ok := strings.CutPrefix(line, "CapBnd:"); ok {
			mask, err := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
			if err != nil {
				return "", fmt.Errorf("/proc/%s/status: CapBnd: %w", pid, err)
			}
			return capabilityList(mask &^ (1 << unix.CAP_SYS_TIME)), nil
		}
	}
	return "", fmt.Errorf("/proc/%s/status has no CapBnd", pid)
}

func capabilityList(mask uint64) string {
	list := "-all"
	for n := range 64 {
		if mask&(1<<n) != 0 {
			list += fmt.Sprintf(",+cap_%d", n)
		}
	}
	return list
}
