package containerd

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/tools"
)

// Version is a minor version of containerd that tests can have.
type Version string

const (
	// V16 is Debian 12's package.
	V16 Version = "1.6"
	// V17 is Debian 13's package.
	V17 Version = "1.7"
	// V21 is upstream's 2.1, on Debian 12. Only make campaign builds it.
	V21 Version = "2.1"
	// V23 is upstream's 2.3, on Debian 13.
	V23 Version = "2.3"
)

// Versions lists the versions to test, oldest first.
func Versions() []Version {
	if require.Everything() {
		return []Version{V16, V17, V21, V23}
	}
	return []Version{V16, V17, V23}
}

// Packaged reports whether the version is a package of the distribution.
func (v Version) Packaged() bool { return v == V16 || v == V17 }

// askCommand is the program in the node that calls the daemon.
const askCommand = "/usr/local/bin/testenv-cri"

// upstreamUnit is equivalent to upstream's own unit.
const upstreamUnit = `[Unit]
Description=containerd container runtime
After=network.target dbus.service

[Service]
ExecStartPre=-/sbin/modprobe overlay
ExecStart=/usr/local/bin/containerd
Type=notify
Delegate=yes
KillMode=process
Restart=always
RestartSec=5
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity
OOMScoreAdjust=-999

[Install]
WantedBy=multi-user.target
`

// options is the node of the version. Its layer also has what a proxy beside the daemon needs.
func (v Version) options(t testing.TB, prepare []func(root string) error) nodes.Options {
	t.Helper()
	suite := nodes.Bookworm
	if v == V17 || v == V23 {
		suite = nodes.Trixie
	}
	layer := nodes.Runc
	if v.Packaged() {
		layer = nodes.Containerd
	}
	steps := append([]func(root string) error{v.Install(t)}, prepare...)
	return nodes.Options{Suite: suite, Layers: []nodes.Layer{layer}, Prepare: nodes.InOrder(steps...)}
}

// Install returns the step that prepares a node of one's own for the version: the node also needs runc and the package of
// a packaged version.
func (v Version) Install(t testing.TB) func(root string) error {
	t.Helper()
	programs := v.programs(t)
	return nodes.InOrder(func(root string) error { return install(root, programs) }, v.files)
}

// files are the files of every node, and of an installation of upstream's archive.
func (v Version) files(root string) error {
	texts := map[string]string{
		// containerd's default snapshotter is an overlay, which does not work on the overlay of the node's disk.
		"etc/fstab": "tmpfs /var/lib/containerd tmpfs mode=0711 0 0\n",
	}
	links := map[string]string{"etc/systemd/system/tinyproxy.service": "/dev/null"}
	if !v.Packaged() {
		const unitFile = "usr/local/lib/systemd/system/" + unit
		texts[unitFile] = upstreamUnit
		links["etc/systemd/system/multi-user.target.wants/"+unit] = "/" + unitFile
	}
	for path, text := range texts {
		at := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			return err
		}
	}
	for path, target := range links {
		at := filepath.Join(root, path)
		if err := os.Remove(at); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.Symlink(target, at); err != nil {
			return err
		}
	}
	return nil
}

// programs are what is installed beside the packages, by path in the node.
func (v Version) programs(t testing.TB) map[string]string {
	t.Helper()
	ask := filepath.Join(t.TempDir(), "cri")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", ask, "github.com/machineadm/machineadm/testenv/containerd/cmd/cri")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the command cri: %v\n%s", err, out)
	}
	all := map[string]string{askCommand: ask}
	if !v.Packaged() {
		for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
			all["/usr/local/bin/"+name] = tools.For(t, fmt.Sprintf("containerd-%s/%s", v, name))
		}
	}
	return all
}

func install(root string, programs map[string]string) error {
	for to, from := range programs {
		if err := require.CopyProgram(filepath.Join(root, to), from); err != nil {
			return err
		}
	}
	return nil
}
