package machine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func commandDirectories() []string {
	return []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}
}

func programSuffixes() []string { return []string{""} }

func isProgram(info fs.FileInfo) bool { return info.Mode()&0o111 != 0 }

func baseEnvironment() []string {
	home, ok := os.LookupEnv("HOME")
	if !ok {
		home = "/"
	}
	return []string{"HOME=" + home}
}

// workingDirectory avoids that commands keep the caller's working directory busy.
func workingDirectory(string) string { return "/" }

func signalOf(state *os.ProcessState) string {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return ""
	}
	if name := unix.SignalName(status.Signal()); name != "" {
		return strings.TrimPrefix(name, "SIG")
	}
	return strconv.Itoa(int(status.Signal())) // real-time signals have no name
}

func wasKilled(state *os.ProcessState) bool { return signalOf(state) != "" }

// group is the process group of a running command.
type group struct {
	mutex      sync.Mutex
	leader     int // the command's PID; 0 once it can belong to another process
	terminated bool
}

// runGroup runs the command as the leader of a process group. When ctx ends, the group is sent SIGTERM, which is reported,
// and after the grace SIGKILL. What is left of the group when the command ends is killed, unless it starts a service.
func runGroup(ctx context.Context, cmd *exec.Cmd, grace time.Duration, starts bool) (terminated bool, err error) {
	// The kernel sends Pdeathsig when the thread ends that started the child, so that thread must outlive it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	g := &group{leader: cmd.Process.Pid}
	defer context.AfterFunc(ctx, func() { g.end(grace) })()
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if !starts {
		err = g.signal(unix.SIGKILL)
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.leader = 0
	return g.terminated, errors.Join(err, cmd.Wait())
}

func (g *group) end(grace time.Duration) {
	if grace > 0 && g.signal(unix.SIGTERM) == nil {
		time.AfterFunc(grace, func() { _ = g.signal(unix.SIGKILL) }) // the group may have ended
		return
	}
	_ = g.signal(unix.SIGKILL)
}

func (g *group) signal(s unix.Signal) error {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.leader == 0 {
		return os.ErrProcessDone
	}
	if err := unix.Kill(-g.leader, s); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	g.terminated = g.terminated || s == unix.SIGTERM
	return nil
}
