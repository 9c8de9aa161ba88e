package nodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// nspawn is a machine made of systemd-nspawn, an overlay, a network namespace and a control group.
type nspawn struct {
	inst     instance
	hostname string
	root     string // the mounted overlay
	// timeDaemon is Options.TimeDaemon.
	timeDaemon bool
	init       Init
	limits     bool     // Options.Limits
	shadows    []cgroup // its groups in hierarchies of version 1, with limits
	link       connection

	mu   sync.Mutex
	last *session // nil before the first start
	runs int      // commands so far, for the names of their control groups
}

// session is one time that the machine is on.
type session struct {
	leader string // PID 1 of the node, as a process of the host
	bounds string // the node's capability bounding set, for setpriv(1)
	group  cgroup
	cut    bool          // its power was cut
	up     chan struct{} // closed when the boot is finished
	off    chan struct{} // closed when the machine is off; exit is set then
	exit   error
}

// exitRebooting is how systemd-nspawn --keep-unit ends when the machine wants to be started again.
const exitRebooting = 133

// assemble makes the node's disk and lets prepare edit it.
func (m *nspawn) assemble(lowers []string, prepare func(string) error) error {
	o, err := newOverlay(m.inst.dir, lowers)
	if err != nil {
		return err
	}
	if err := o.mount(); err != nil {
		return err
	}
	m.root = o.root
	if prepare == nil {
		return nil
	}
	if err := prepare(o.root); err != nil {
		return fmt.Errorf("prepare the node's files: %w", err)
	}
	return nil
}

func (m *nspawn) start(ctx context.Context, console string) error {
	if m.state().on() {
		return errors.New("start: the node is already on")
	}
	if err := awaitInotify(ctx); err != nil {
		return err
	}
	group, err := m.makeGroups(ctx)
	if err != nil {
		return err
	}
	if err := m.link.renew(ctx, m.inst.netNS()); err != nil {
		return err
	}
	s, err := m.launch(ctx, group, console)
	if err != nil {
		return err
	}
	return poll(ctx, pollInterval, "the node's init to run as PID 1", func() (bool, error) {
		if closed(s.off) {
			return false, fmt.Errorf("systemd-nspawn ended: %w", errors.Join(errOff, s.exit))
		}
		leader, err := findInit(group, m.process())
		if err != nil || leader == "" {
			return false, err
		}
		bounds, err := boundingSet(leader)
		if err != nil {
			return false, err
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		s.leader, s.bounds = leader, bounds
		return true, nil
	})
}

// launch starts systemd-nspawn and watches it until it ends. It dies with this process, and its machine with it.
func (m *nspawn) launch(ctx context.Context, group cgroup, console string) (_ *session, err error) {
	out, err := os.OpenFile(console, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	dir, err := group.open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	// The kernel gives it a name in the abstract namespace that no other socket has: the socket of the boot before lives for as long as a
	// process that this one is about to start has it open.
	notices, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("socket for the node's notices: %w", err)
	}

	// The machine outlives the context that it is started in.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "sh", m.arguments()...)
	cmd.Env = []string{
		"PATH=" + nodePath, "LANG=C.UTF-8", "NOTIFY_SOCKET=" + notices.LocalAddr().String(),
		fmt.Sprintf("SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=%t", !m.limits), "SYSTEMD_NSPAWN_API_VFS_WRITABLE=network",
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid: true, Pdeathsig: syscall.SIGKILL, UseCgroupFD: true, CgroupFD: int(dir.Fd()),
		Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS, // and Go makes the mounts private
	}
	s := &session{up: make(chan struct{}), off: make(chan struct{}), group: group}
	if err := m.watch(s, cmd, notices); err != nil {
		return nil, errors.Join(fmt.Errorf("start systemd-nspawn: %w", err), notices.Close())
	}
	return s, nil
}

// watch starts the command and keeps the session's channels until it ends.
func (m *nspawn) watch(s *session, cmd *exec.Cmd, notices *net.UnixConn) error {
	started := func() {
		m.mu.Lock()
		m.last = s
		m.mu.Unlock()
		if m.init != "" {
			go awaitMark(m.root, s)
			return
		}
		go awaitReady(notices, s.up)
	}
	if m.init != "" {
		if err := removeMark(m.root); err != nil {
			return err
		}
	}
	return startHeld(cmd, started, func(err error) {
		s.exit = errors.Join(err, notices.Close())
		close(s.off)
	})
}

// awaitReady reads sd_notify(3) datagrams until the socket is closed, and closes up when the first one says that the boot
// is finished. PID 1 blocks when its notices are not read: it sends some at each daemon-reload.
func awaitReady(notices *net.UnixConn, up chan<- struct{}) {
	datagram := make([]byte, 4096)
	for ready := false; ; {
		n, err := notices.Read(datagram)
		if err != nil {
			return
		}
		if !ready && slices.Contains(strings.Split(string(datagram[:n]), "\n"), "READY=1") {
			ready = true
			close(up)
		}
	}
}

// withOwnProc is run in new process and mount namespaces. systemd-nspawn killed in the machine's namespace would leave its
// node running; as PID 1 of a namespace it takes everything along.
const withOwnProc = `mount -t proc proc /proc && exec systemd-nspawn "$@"`

func (m *nspawn) arguments() []string {
	args := []string{
		"-c", m.joinShadows() + withOwnProc, "systemd-nspawn",
		"--quiet", "--settings=no", "--register=no", "--keep-unit",
		"--console=read-only", "--directory=" + m.root, "--machine=" + m.inst.name, "--hostname=" + m.hostname,
		"--network-namespace-path=" + m.inst.netNS(), "--capability=CAP_NET_ADMIN",
		"--resolv-conf=off", "--timezone=off", "--link-journal=no",
	}
	if m.timeDaemon {
		// Never the first without the second: the clock is the machine's.
		args = append(args, "--capability=CAP_SYS_TIME", "--system-call-filter=~@clock")
	}
	if m.init != "" {
		return append(args, m.init.program())
	}
	if m.limits {
		return append(args, limitsArguments()...)
	}
	return append(args, "--boot", "--notify-ready=yes")
}

// process returns the name of PID 1.
func (m *nspawn) process() string {
	return cmp.Or(m.init.process(), "systemd")
}

// findInit looks for the process that is number 1 below systemd-nspawn's process namespace, once it has the
// name of the node's init and is no longer systemd-nspawn on the way there.
func findInit(group cgroup, init string) (string, error) {
	pids, err := group.pids()
	if err != nil {
		return "", err
	}
	for _, pid := range pids {
		status, err := os.ReadFile("/proc/" + pid + "/status")
		if err != nil {
			continue // ended meanwhile
		}
		var name string
		var numbers []string
		for line := range strings.Lines(string(status)) {
			if v, ok := strings.CutPrefix(line, "Name:"); ok {
				name = strings.TrimSpace(v)
			}
			if v, ok := strings.CutPrefix(line, "NSpid:"); ok {
				numbers = strings.Fields(v)
			}
		}
		if name == init && len(numbers) == 3 && numbers[2] == "1" {
			return pid, nil
		}
	}
	return "", nil
}

func (m *nspawn) state() power {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last.state()
}

// state is called with the machine's lock held.
func (s *session) state() power {
	switch {
	case s == nil || s.cut:
		return poweredOff
	case !closed(s.off) && closed(s.up):
		return booted
	case !closed(s.off):
		return booting
	}
	var exit *exec.ExitError
	if errors.As(s.exit, &exit) && exit.ExitCode() == exitRebooting {
		return rebooting
	}
	return poweredOff
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (m *nspawn) cut(ctx context.Context) error {
	m.mu.Lock()
	s := m.last
	if s != nil {
		s.cut = true
	}
	m.mu.Unlock()
	if s == nil {
		return nil
	}
	if err := s.group.remove(ctx); err != nil {
		return err
	}
	select {
	case <-s.off:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for systemd-nspawn to end: %w", ctx.Err())
	}
}

func (m *nspawn) release(ctx context.Context) error {
	if err := m.cut(ctx); err != nil {
		return err
	}
	return reclaim(ctx, m.inst)
}
