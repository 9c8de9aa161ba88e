package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

const (
	ownSysctl  = "/etc/sysctl.d/99-machineadm-node.conf"
	ownModules = "/etc/modules-load.d/machineadm-node.conf"
)

// fixture is a machine with real files below a temporary root and a kernel in memory.
type fixture struct {
	root    string
	kernel  *fakeKernel
	machine sdk.Machine
}

func newFixture(t *testing.T, tree map[string]string) fixture {
	t.Helper()
	target := machinetest.New(t)
	b := fixture{root: target.Root, kernel: newKernel(), machine: target.Machine}
	b.machine.Kernel = b.kernel
	for name, content := range tree {
		b.write(t, name, content)
	}
	return b
}

// write makes a file of the target; content "-> X" makes a link.
func (b fixture) write(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(b.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if to, link := strings.CutPrefix(content, "-> "); link {
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// read returns a file of the target, or "(none)".
func (b fixture) read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(b.root, name))
	if errors.Is(err, os.ErrNotExist) {
		return "(none)"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func (b fixture) plan(t *testing.T, spec string) (sdk.Plan, error) {
	t.Helper()
	return plan(t.Context(), b.machine, sysctl(t, spec))
}

// apply plans and applies every change, as the SDK does, and stops at the first error.
func (b fixture) apply(t *testing.T, spec string) (*recorder, error) {
	t.Helper()
	progress := &recorder{}
	planned, err := b.plan(t, spec)
	if err != nil {
		return progress, err
	}
	for _, change := range planned.Changes {
		if err := change.Do(t.Context(), progress); err != nil {
			return progress, err
		}
	}
	return progress, nil
}

func show(p sdk.Plan, err error) []byte {
	var b strings.Builder
	for _, c := range p.Changes {
		fmt.Fprintf(&b, "change %s: %s (live only: %v)\n%s", c.ID, c.Summary, c.NeedsLive, c.Diff)
	}
	for _, w := range p.Warnings {
		fmt.Fprintf(&b, "warning %s: %s\n", w.Field, w.Message)
	}
	if err != nil {
		fmt.Fprintf(&b, "error %s\n", code(err))
		var e *pluginv1.Error
		if errors.As(err, &e) {
			fmt.Fprintf(&b, "%s (final: %v)\n", e.Message, e.Final)
			for _, v := range e.Violations {
				fmt.Fprintf(&b, "%s: %s\nhint: %s\n", v.Field, v.Message, v.Hint)
			}
			if len(e.Violations) == 0 {
				fmt.Fprintf(&b, "hint: %s\n", e.Hint)
			}
		}
	}
	if b.Len() == 0 {
		return []byte("converged\n")
	}
	return []byte(b.String())
}

func code(err error) string {
	var e *pluginv1.Error
	switch {
	case !errors.As(err, &e):
		return "Internal " + err.Error()
	case e.Code == pluginv1.CodePrecondition:
		return "Precondition"
	case e.Code == pluginv1.CodeInvalidConfig:
		return "InvalidConfig"
	}
	return fmt.Sprint(e.Code)
}

// TestPlan compares whole plans with golden files.
func TestPlan(t *testing.T) {
	t.Parallel()
	kubernetes := func(k *fakeKernel) {
		k.Modules["overlay"] = machine.ModuleBuiltIn
		k.Modules["br_netfilter"] = machine.ModuleLoadable
	}
	for _, c := range []struct {
		name, spec string
		tree       map[string]string
		kernel     func(k *fakeKernel)
	}{
		{name: "fresh", spec: `{"profiles":["kubernetes"]}`, kernel: kubernetes},
		{name: "only-what-differs", spec: `{"parameters":{"net.ipv4.tcp_rmem":"4096 131072 6291456","kernel.panic":10}}`},
		{name: "modules-only", spec: `{"modules":["br_netfilter"]}`, kernel: kubernetes},
		{name: "module-absent", spec: `{"modules":["overlay","nosuch","neither"]}`, kernel: kubernetes},
		{name: "unknown-key", spec: `{"parameters":{"kernel.nosuch":1,"kernel/neither":2,"kernel.panic":3}}`, kernel: func(k *fakeKernel) {
			k.readErrors["kernel"] = machine.ErrNotRegular
		}},
		{name: "unknown-key-of-a-module", spec: `{"parameters":{"net.bridge.bridge-nf-call-iptables":1,"net.netfilter.nf_conntrack_max":2,
			"net.ipv4.vs.conntrack":1,"net.bridges.x":1}}`},
		{name: "unknown-key-ignored", spec: `{"parameters":{"kernel.nosuch":1,"kernel.panic":0},"ignoreMissing":["kernel.nosuch"]}`},
		{name: "write-only-key", spec: `{"parameters":{"net.ipv4.route.flush":1}}`, kernel: func(k *fakeKernel) {
			k.readErrors["net/ipv4/route/flush"] = syscall.EACCES
		}},
		{name: "below-a-key", spec: `{"parameters":{"kernel.panic.x":1}}`, kernel: func(k *fakeKernel) {
			k.readErrors["kernel/panic/x"] = syscall.ENOTDIR
		}},
		{name: "group-of-keys", spec: `{"parameters":{"net.ipv4.conf":1}}`, kernel: func(k *fakeKernel) {
			k.readErrors["net/ipv4/conf"] = machine.ErrNotRegular
		}},
		{name: "override-debian", spec: `{"parameters":{"net.ipv4.ip_forward":1}}`, tree: map[string]string{
			"/etc/sysctl.conf":             "#net.ipv4.ip_forward=1\nnet/ipv4/ip_forward = 0\n",
			"/etc/sysctl.d/99-sysctl.conf": "-> ../sysctl.conf",
		}},
		{name: "override-vendor-exclusion", spec: `{"parameters":{"net.ipv4.ip_forward":1,"kernel.panic":1}}`, tree: map[string]string{
			"/usr/lib/sysctl.d/zz-vendor.conf": "# vendor\n-net.ipv4.ip_forward\nkernel.panic = 1\n",
		}},
		{name: "override-of-an-empty-value", spec: `{"parameters":{"kernel.modprobe":""}}`, tree: map[string]string{
			"/etc/sysctl.d/zz.conf": "-kernel.modprobe\n",
		}},
		{name: "no-override", spec: `{"parameters":{"net.ipv4.ip_forward":1,"net.ipv4.tcp_rmem":"1 2 3"}}`, tree: map[string]string{
			"/usr/lib/sysctl.d/50-vendor.conf":  "net.ipv4.ip_forward = 0\n",
			"/usr/lib/sysctl.d/zz-vendor.conf":  "net.ipv4.ip_forward = 0\n",
			"/etc/sysctl.d/zz-vendor.conf":      "-> /dev/null",
			"/run/sysctl.d/zzz-glob.conf":       "net.ipv4.* = 0\n",
			"/etc/sysctl.conf":                  "net.ipv4.tcp_rmem = 1\t2\t3\n",
			"/etc/sysctl.d/zzz-backup.conf.bak": "net.ipv4.ip_forward = 0\n",
		}},
		{name: "two-documents", spec: `{"parameters":{"net.ipv4.ip_forward":1,"kernel.panic":1}}`, tree: map[string]string{
			"/etc/sysctl.d/99-machineadm-apps.conf":   "kernel.panic = 1\nnet/ipv4/ip_forward = 0\n",
			"/etc/sysctl.d/99-machineadm-edited.conf": "-kernel.panic=2\rx=1\n\rkernel.panic = 3\x00kernel.panic = 4",
			"/etc/sysctl.d/99-machineadm-masked.conf": "-> /dev/null",
		}},
		{name: "masked", spec: `{"parameters":{"kernel.panic":1}}`, tree: map[string]string{ownSysctl: "-> /dev/null"}},
		{name: "dropped-keys", spec: `{"parameters":{"kernel.panic":0}}`, tree: map[string]string{
			ownSysctl: "kernel.panic = 5\nnet.ipv4.conf.eth0/100.rp_filter = 1\n", ownModules: "overlay\n",
		}},
		{name: "explicit-over-profile", spec: `{"profiles":["kubernetes"],"parameters":{"net.ipv4.ip_forward":0}}`, kernel: kubernetes},
		{name: "invalid", spec: `{"parameters":{"kernel..panic":0},"profiles":["x"]}`},
		{name: "built-in-but-unlisted", spec: `{"profiles":["kubernetes"]}`, kernel: func(k *fakeKernel) {
			k.Modules["overlay"] = machine.ModuleLoaded
			k.Parameters["net/bridge/bridge-nf-call-iptables"] = "1"
			k.Parameters["net/bridge/bridge-nf-call-ip6tables"] = "1"
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t, c.tree)
			if c.kernel != nil {
				c.kernel(b.kernel)
			}
			got := show(b.plan(t, c.spec))
			if len(b.kernel.log) > 0 {
				t.Errorf("a plan changed the kernel: %v", b.kernel.log)
			}
			golden(t, "plan/"+c.name+".txt", got)
		})
	}
}

// TestPlanOffline plans against an empty image and against one that matches the document.
func TestPlanOffline(t *testing.T) {
	t.Parallel()
	image, root := machinetest.NewImage(t)
	b := fixture{root: root, machine: image}
	spec := `{"profiles":["kubernetes"],"parameters":{"kernel.nosuch":1}}`
	first, err := b.plan(t, spec)
	golden(t, "plan/offline.txt", show(first, err))
	for _, change := range first.Changes {
		if change.NeedsLive {
			if err := change.Do(t.Context(), &recorder{}); !errors.Is(err, machine.ErrOffline) {
				t.Errorf("%s in an image: %v", change.ID, err)
			}
			continue
		}
		if err := change.Do(t.Context(), &recorder{}); err != nil {
			t.Fatal(err)
		}
	}
	second, err := b.plan(t, spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range second.Changes {
		if !change.NeedsLive {
			t.Errorf("not converged: %s", change.ID)
		}
	}
}

func TestFit(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	if fitness, _, err := fit(t.Context(), b.machine); err != nil || fitness != sdk.FitnessActive {
		t.Errorf("a live machine: %v, %v", fitness, err)
	}
	b.kernel.readErrors["kernel/ostype"] = syscall.ENOENT
	if fitness, why, err := fit(t.Context(), b.machine); err != nil || fitness != sdk.FitnessUnsupported || why == "" {
		t.Errorf("a machine without /proc/sys: %v, %q, %v", fitness, why, err)
	}
}
