package machine

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

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

// workingDirectory keeps commands from holding a mount that the caller happened to stand in.
func workingDirectory(string) string { return "/" }

func signalOf(state *os.ProcessState) string {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return ""
	}
	if name := unix.SignalName(status.Signal()); name != "" {
		return strings.TrimPrefix(name, "SIG")
	}
	return strconv.Itoa(int(status.Signal())) // Real-time signals have no name.
}

func wasKilled(state *os.ProcessState) bool { return signalOf(state) != "" }

// group is the process group that a command leads. Its number is the command's, and stays taken until the command is
// waited for: only until then may it be killed by number.
type group struct {
	mutex  sync.Mutex
	leader int
}

// runGroup runs the command as the leader of a process group, until it ends or its context does, and kills what is
// then left of the group.
func runGroup(cmd *exec.Cmd, end *ending) error {
	// The kernel sends Pdeathsig when the thread ends that started the child, so that thread must outlive it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	g := &group{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = g.kill
	end.by(func() error { return g.signal(unix.SIGTERM) })
	if err := g.start(cmd); err != nil {
		return err
	}
	for {
		err := unix.Waitid(unix.P_PID, g.leader, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return errors.Join(g.end(), cmd.Wait())
}

// by says how a command is asked to end. It is called before the command is started.
func (e *ending) by(ask func() error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.ask = ask
}

// start holds the mutex, for the context may end before the number of the group is known.
func (g *group) start(cmd *exec.Cmd) error {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	g.leader = cmd.Process.Pid
	return nil
}

func (g *group) kill() error { return g.signal(unix.SIGKILL) }

func (g *group) signal(s unix.Signal) error {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.leader == 0 {
		return os.ErrProcessDone
	}
	if err := unix.Kill(-g.leader, s); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

// end kills what the dead leader left behind and gives the number up.
func (g *group) end() error {
	err := g.kill()
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.leader = 0
	return err
}
