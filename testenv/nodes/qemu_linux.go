package nodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// qemu is a virtual machine with a kernel and a disk of its own, emulated in software, without a network.
type qemu struct {
	inst     instance
	hostname string
	disk     disk
	clock    time.Duration // how far off it is

	mu   sync.Mutex
	last *run // nil before the first start
}

// run is one time that the virtual machine is on.
type run struct {
	group cgroup
	link  *link
	cut   bool          // its power was cut
	off   chan struct{} // closed when the machine is off; exit and again are set then
	exit  error
	again bool // it went off because it wants to be started again
}

// assemble makes the machine's disk and lets prepare edit it.
func (m *qemu) assemble(ctx context.Context, lowers []string, prepare func(string) error) (err error) {
	m.disk, err = newDisk(ctx, m.inst.dir, lowers, prepare)
	return err
}

func (m *qemu) start(ctx context.Context, console string) error {
	if m.state().on() {
		return errors.New("start: the node is already on")
	}
	group, err := cgroupOf(m.inst.name)
	if err != nil {
		return err
	}
	if err := group.remove(ctx); err != nil {
		return err
	}
	if err := group.make(); err != nil {
		return err
	}
	r, err := m.launch(ctx, group, console)
	if err != nil {
		return fmt.Errorf("start qemu: %w", err)
	}
	select {
	case <-r.link.hello:
		return nil
	case <-r.off:
		return fmt.Errorf("qemu ended: %w", errors.Join(errOff, r.exit))
	case <-ctx.Done():
		return fmt.Errorf("waiting for systemd to run as PID 1: %w", ctx.Err())
	}
}

// launch starts qemu and watches it until it ends. It dies with this process.
func (m *qemu) launch(ctx context.Context, group cgroup, console string) (_ *run, err error) {
	out, err := os.OpenFile(console, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	before, err := out.Stat()
	if err != nil {
		return nil, err
	}
	dir, err := group.open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	toAgent, agentEnd, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, agentEnd.Close()) }()
	toMonitor, monitorEnd, err := socketPair()
	if err != nil {
		return nil, errors.Join(err, toAgent.Close())
	}
	defer func() { err = errors.Join(err, monitorEnd.Close()) }()

	// The machine outlives the context that it is started in.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), qemuProgram, m.arguments(console)...)
	cmd.Env = []string{"PATH=" + nodePath, "LANG=C.UTF-8", "TMPDIR=" + m.inst.dir}
	cmd.Dir = m.inst.dir
	cmd.Stdout, cmd.Stderr = out, out
	cmd.ExtraFiles = []*os.File{agentEnd, monitorEnd} // descriptors 3 and 4, see arguments
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, UseCgroupFD: true, CgroupFD: int(dir.Fd())}

	r := &run{group: group, off: make(chan struct{})}
	reset := make(chan bool, 1)
	started := func() {
		r.link = newLink(toAgent)
		go func() { reset <- sawReset(toMonitor) }()
		m.mu.Lock()
		m.last = r
		m.mu.Unlock()
	}
	ended := func(err error) {
		wantsMore := <-reset
		panicked, readErr := saysPanic(console, before.Size())
		r.again = wantsMore && !panicked
		r.exit = errors.Join(err, readErr, r.link.close(), toMonitor.Close())
		if panicked {
			r.exit = errors.Join(r.exit, errors.New("the kernel panicked, see the console"))
		}
		close(r.off)
	}
	if err := startHeld(cmd, started, ended); err != nil {
		return nil, errors.Join(err, toAgent.Close(), toMonitor.Close())
	}
	return r, nil
}

const qemuProgram = "qemu-system-x86_64"

// kernelArguments: a panic ends the machine at once. The rest saves emulated time: mitigations that protect nobody, 31
// serial ports, and units that find nothing to do here.
const kernelArguments = "root=/dev/vda rw console=ttyS0 panic=-1 mitigations=off 8250.nr_uarts=1" +
	" systemd.mask=modprobe@drm.service systemd.mask=modprobe@efi_pstore.service systemd.mask=e2scrub_reap.service" +
	" systemd.mask=ldconfig.service systemd.mask=systemd-hwdb-update.service systemd.mask=systemd-journal-catalog-update.service"

// arguments describe the machine. Descriptors 3 and 4 are the ends of the agent's port and of the monitor.
//
// One processor: two would wait for each other's locks whenever the host has something else to do. It is an old one
// without cmpxchg16b, which qemu 7.2 emulates wrongly, so that newer kernels trip over it. The cache mode hands what the
// machine flushed to the host's kernel without waiting for the host's disk: it outlives qemu, and nothing here has to
// outlive the host.
func (m *qemu) arguments(console string) []string {
	return []string{
		"-name", m.inst.name, "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot",
		"-machine", "q35,sata=off,smbus=off,i8042=off", "-cpu", "Nehalem,-cx16", "-smp", "1", "-m", "2048",
		"-accel", "tcg,thread=multi,tb-size=256", "-rtc", "base=" + m.rtc(time.Now()),
		"-chardev", "file,id=console,append=on,path=" + commas(console), "-serial", "chardev:console",
		"-chardev", "socket,id=agent,fd=3",
		"-device", "virtio-serial-pci", "-device", "virtserialport,chardev=agent,name=" + portName,
		"-chardev", "socket,id=monitor,fd=4", "-mon", "chardev=monitor,mode=control",
		"-drive", "file=" + commas(m.disk.image) + ",format=raw,if=virtio,cache=unsafe,discard=unmap",
		"-device", "virtio-rng-pci",
		"-kernel", m.disk.kernel, "-initrd", m.disk.initrd, "-append", kernelArguments + " systemd.hostname=" + m.hostname,
	}
}

// rtc is where the machine's hardware clock starts.
func (m *qemu) rtc(now time.Time) string {
	if m.clock == 0 {
		return "utc"
	}
	return now.UTC().Add(m.clock).Format("2006-01-02T15:04:05")
}

// commas escapes a value for qemu's lists of options.
func commas(s string) string { return strings.ReplaceAll(s, ",", ",,") }

func saysPanic(console string, from int64) (bool, error) {
	text, err := os.ReadFile(console)
	if err != nil {
		return false, err
	}
	return bytes.Contains(text[from:], []byte("Kernel panic - not syncing")), nil
}

func (m *qemu) exec(ctx context.Context, c command) (int, error) {
	m.mu.Lock()
	r := m.last
	on := r.state().on()
	m.mu.Unlock()
	if !on {
		return 0, errOff
	}
	exit, err := r.link.run(ctx, c)
	if errors.Is(err, errOff) {
		// The connection ends a little before qemu: then the machine is off.
		select {
		case <-r.off:
		case <-ctx.Done():
		}
	}
	return exit, err
}

func (m *qemu) state() power {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last.state()
}

// state is called with the machine's lock held.
func (r *run) state() power {
	switch {
	case r == nil || r.cut:
		return poweredOff
	case !closed(r.off) && closed(r.link.up):
		return booted
	case !closed(r.off):
		return booting
	case r.again:
		return rebooting
	}
	return poweredOff
}

func (m *qemu) cut(ctx context.Context) error {
	m.mu.Lock()
	r := m.last
	if r != nil {
		r.cut = true
	}
	m.mu.Unlock()
	if r == nil {
		return nil
	}
	if err := r.group.remove(ctx); err != nil {
		return err
	}
	select {
	case <-r.off:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for qemu to end: %w", ctx.Err())
	}
}

func (m *qemu) release(ctx context.Context) error {
	if err := m.cut(ctx); err != nil {
		return err
	}
	return reclaim(ctx, m.inst)
}
