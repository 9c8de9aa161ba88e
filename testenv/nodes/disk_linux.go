package nodes

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/machineadm/machineadm/testenv/nodes/internal/wire"
)

// disk is what a virtual machine boots from. Kernel and initrd are the kernel layer's, in the cache.
type disk struct{ kernel, initrd, image string }

const (
	// The image is sparse, so this is what a node can fill, not what it takes.
	diskSize = 4 << 30

	portName     = wire.PortName
	agentPackage = "github.com/machineadm/machineadm/testenv/nodes/cmd/nodes-agent"
	agentPath    = "usr/lib/machineadm-testenv/agent"
	agentUnit    = "usr/lib/systemd/system/machineadm-testenv.service"
	agentWanted  = "usr/lib/systemd/system/sysinit.target.wants/machineadm-testenv.service"
)

// agentService runs from early in the boot until the last processes are killed, also in the emergency shell. Without it
// the machine is of no use, so it goes down when the agent does.
const agentService = `[Unit]
Description=Agent of the test that booted this machine
DefaultDependencies=no
Wants=modprobe@virtio_console.service
After=modprobe@virtio_console.service
IgnoreOnIsolate=yes
FailureAction=poweroff-force
[Service]
Environment=PATH=` + nodePath + `
ExecStart=/` + agentPath + `
StandardError=journal+console
`

// newDisk writes the system with the node's own files into an image, without mounting that. dir is the node's.
func newDisk(ctx context.Context, dir string, lowers []string, prepare func(string) error) (disk, error) {
	d := disk{image: filepath.Join(dir, "disk.raw")}
	for file, pattern := range map[*string]string{&d.kernel: "boot/vmlinuz-*", &d.initrd: "boot/initrd.img-*"} {
		found, err := findOne(lowers, pattern)
		if err != nil {
			return disk{}, err
		}
		*file = found
	}
	o, err := newOverlay(dir, lowers)
	if err != nil {
		return disk{}, err
	}
	if err := o.mount(); err != nil {
		return disk{}, err
	}
	if prepare != nil {
		if err := prepare(o.root); err != nil {
			return disk{}, fmt.Errorf("prepare the node's files: %w", err)
		}
	}
	if err := installAgent(ctx, o.root); err != nil {
		return disk{}, fmt.Errorf("install the agent: %w", err)
	}
	if err := makeImage(ctx, d.image, o.root); err != nil {
		return disk{}, err
	}
	if err := unmountAll(ctx, filepath.Base(dir)); err != nil {
		return disk{}, err
	}
	for _, used := range []string{o.upper, o.work, o.root} {
		if err := os.RemoveAll(used); err != nil {
			return disk{}, err
		}
	}
	return d, nil
}

func findOne(lowers []string, pattern string) (string, error) {
	var found []string
	for _, lower := range lowers {
		names, err := filepath.Glob(filepath.Join(lower, pattern))
		if err != nil {
			return "", err
		}
		found = slices.Concat(found, names)
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%d files %s in the system, want one", len(found), pattern)
	}
	return found[0], nil
}

// installAgent builds the agent from the checkout that the test belongs to, so that both have the same protocol.
func installAgent(ctx context.Context, root string) error {
	for _, file := range []string{agentPath, agentWanted} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(file)), 0o755); err != nil {
			return err
		}
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(root, agentPath), agentPackage)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(root, agentUnit), []byte(agentService), 0o644); err != nil {
		return err
	}
	return os.Symlink("../"+filepath.Base(agentUnit), filepath.Join(root, agentWanted))
}

func makeImage(ctx context.Context, image, root string) error {
	f, err := os.OpenFile(image, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.Truncate(diskSize); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	var words bytes.Buffer
	cmd := exec.CommandContext(ctx, "mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", "-L", "rootfs",
		"-E", "root_owner=0:0,lazy_itable_init=1,lazy_journal_init=1", "-d", root, image)
	cmd.Env = []string{"PATH=" + nodePath, "LANG=C.UTF-8"}
	cmd.Stdout, cmd.Stderr = &words, &words
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	ended := make(chan error, 1)
	if err := startHeld(cmd, func() {}, func(err error) { ended <- err }); err != nil {
		return err
	}
	if err := <-ended; err != nil {
		return fmt.Errorf("mke2fs: %w\n%s", err, words.String())
	}
	return nil
}
