// Command nodes-agent is the only addition to a virtual machine that a test does not request: it runs the test's
// commands there. It communicates over a virtio-serial port, so that the machine needs no network.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/testenv/nodes/internal/agent"
	"github.com/machineadm/machineadm/testenv/nodes/internal/wire"
)

const (
	ports    = "/sys/class/virtio-ports"
	groups   = "/sys/fs/cgroup"
	interval = 20 * time.Millisecond
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "nodes-agent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	device, err := findPort()
	if err != nil {
		return err
	}
	// Blocking on purpose: the port cannot be polled before the other end is there.
	fd, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", device, err)
	}
	a := agent.Agent{
		Conn:   wire.NewConn(port{os.NewFile(uintptr(fd), device)}),
		Groups: groups,
		Env:    []string{"PATH=" + os.Getenv("PATH"), "HOME=/root", "LANG=C.UTF-8", "TERM=dumb"},
		Boot:   boot,
	}
	return a.Serve(ctx)
}

// findPort waits for the driver, which a unit before this one asked for. systemd bounds the wait.
func findPort() (string, error) {
	for ; ; time.Sleep(interval) {
		names, err := filepath.Glob(ports + "/*/name")
		if err != nil {
			return "", err
		}
		for _, file := range names {
			name, err := os.ReadFile(file)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return "", err
			}
			device := "/dev/" + filepath.Base(filepath.Dir(file))
			if strings.TrimSpace(string(name)) == wire.PortName {
				return device, nil
			}
		}
	}
}

// port is also read while its other end is closed: then the kernel returns nothing instead of waiting.
type port struct{ *os.File }

func (p port) Read(b []byte) (int, error) {
	for ; ; time.Sleep(interval) {
		n, err := unix.Read(int(p.Fd()), b)
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// boot waits for systemd, until every unit was started or failed. The test checks how the boot ended.
func boot(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "systemctl", "is-system-running", "--wait").Output()
	switch state := strings.TrimSpace(string(out)); state {
	case "running", "degraded", "maintenance", "stopping":
		return nil
	default:
		return fmt.Errorf("systemd says it is %q: %w", state, err)
	}
}
