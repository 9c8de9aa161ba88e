package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

func wantPrecondition(t *testing.T, err error, parts ...string) {
	t.Helper()
	text := string(show(sdk.Plan{}, err))
	if !strings.HasPrefix(text, "error Precondition") {
		t.Fatalf("got %v, want a Precondition", err)
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	b.kernel.Modules["overlay"] = machine.ModuleBuiltIn
	b.kernel.Modules["br_netfilter"] = machine.ModuleLoadable
	b.kernel.Appears["br_netfilter"] = map[string]string{
		"net/bridge/bridge-nf-call-iptables": "1", "net/bridge/bridge-nf-call-ip6tables": "0",
	}
	spec := `{"profiles":["kubernetes"],"parameters":{"net.ipv4.tcp_rmem":"4096 131072 6291456","net/ipv4/conf/eth0.100/rp_filter":2}}`
	if _, err := b.apply(t, spec); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"load br_netfilter", "net/ipv4/ip_forward = 1", "net/bridge/bridge-nf-call-ip6tables = 1",
		"net/ipv4/conf/eth0.100/rp_filter = 2",
	}
	if !slices.Equal(b.kernel.log, want) {
		t.Errorf("the kernel got %v, want %v", b.kernel.log, want)
	}
	golden(t, "apply/sysctl.conf", []byte(b.read(t, ownSysctl)))
	golden(t, "apply/modules.conf", []byte(b.read(t, ownModules)))
	for _, name := range []string{ownSysctl, ownModules} {
		info, err := os.Stat(filepath.Join(b.root, name))
		if err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if again := string(show(b.plan(t, spec))); again != "converged\n" {
		t.Errorf("the second plan is not empty:\n%s", again)
	}
}

func TestApplyCorrectsTheMode(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	spec := `{"parameters":{"kernel.panic":0}}`
	if _, err := b.apply(t, spec); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(b.root, ownSysctl), 0o600); err != nil {
		t.Fatal(err)
	}
	got := string(show(b.plan(t, spec)))
	if !strings.Contains(got, "mode 0600 -> 0644") {
		t.Errorf("got %s", got)
	}
	if _, err := b.apply(t, spec); err != nil {
		t.Fatal(err)
	}
	if again := string(show(b.plan(t, spec))); again != "converged\n" {
		t.Errorf("the second plan is not empty:\n%s", again)
	}
}

func TestApplyRemovesTheFileOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	b := newFixture(t, map[string]string{ownModules: "overlay\n"})
	if _, err := b.apply(t, `{"parameters":{"kernel.panic":0}}`); err != nil {
		t.Fatal(err)
	}
	if got := b.read(t, ownModules); got != "(none)" {
		t.Errorf("the file of an earlier version is still there: %q", got)
	}
}

func TestARefusedValueIsRolledBack(t *testing.T) {
	t.Parallel()
	spec := `{"parameters":{"net.ipv4.ip_forward":1,"kernel.panic":5,"net.ipv4.conf.all.rp_filter":9}}`
	for _, c := range []struct {
		name  string
		fault func(k *fakeKernel)
		parts []string
	}{
		{"EINVAL", func(k *fakeKernel) { k.Refuse["kernel/panic"] = syscall.EINVAL }, []string{
			`spec.parameters["kernel.panic"]`, "kernel.panic = 5", "EINVAL", "invalid argument", "the previous values are restored",
		}},
		{"read-only in a namespace", func(k *fakeKernel) { k.Refuse["kernel/panic"] = syscall.EROFS }, []string{
			"kernel.panic = 5", "EROFS", "namespace",
		}},
		{"EACCES", func(k *fakeKernel) { k.Refuse["kernel/panic"] = syscall.EACCES }, []string{"EACCES", "run as root"}},
		{"another value kept", func(k *fakeKernel) { k.Adjust["kernel/panic"] = func(string) string { return "4" } }, []string{
			`spec.parameters["kernel.panic"]`, "kernel.panic = 5 was written, but the kernel keeps 4", "as the kernel shows it",
		}},
		{"a later write changes an earlier one", func(k *fakeKernel) {
			k.resets["kernel/panic"] = map[string]string{"net/ipv4/conf/all/rp_filter": "1"}
		}, []string{"net.ipv4.conf.all.rp_filter = 9 was written, but the kernel keeps 1"}},
	} {
		for _, former := range []string{"(none)", "# of an earlier run\nkernel.panic = 0\n"} {
			tree := map[string]string{}
			if former != "(none)" {
				tree[ownSysctl] = former
			}
			b := newFixture(t, tree)
			c.fault(b.kernel)
			_, err := b.apply(t, spec)
			wantPrecondition(t, err, c.parts...)
			if c.name != "another value kept" {
				for key, want := range map[string]string{
					"net/ipv4/ip_forward": "0", "kernel/panic": "0", "net/ipv4/conf/all/rp_filter": "0",
				} {
					if got := b.kernel.Parameters[key]; got != want {
						t.Errorf("%s: %s is %s, not restored to %s", c.name, key, got, want)
					}
				}
			}
			if got := b.read(t, ownSysctl); got != former {
				t.Errorf("%s: the file is now %q, was %q", c.name, got, former)
			}
		}
	}
}

func TestAFailedRollBackIsReported(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	b.kernel.Adjust["kernel/panic"] = func(string) string { return "4" }
	b.kernel.lock = []string{"net/ipv4/ip_forward"}
	_, err := b.apply(t, `{"parameters":{"net.ipv4.ip_forward":1,"kernel.panic":5}}`)
	wantPrecondition(t, err, "the kernel keeps 4", "not all previous values could be restored", "net.ipv4.ip_forward = 0", "EPERM")
}

func TestAParameterThatAnEarlierWriteResetsIsWritten(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	b.kernel.Parameters["net/ipv4/conf/all/rp_filter"] = "1"
	b.kernel.resets["net/ipv4/ip_forward"] = map[string]string{"net/ipv4/conf/all/rp_filter": "0"}
	if _, err := b.apply(t, `{"parameters":{"net.ipv4.ip_forward":1,"net.ipv4.conf.all.rp_filter":1}}`); err != nil {
		t.Fatal(err)
	}
	if got := b.kernel.Parameters["net/ipv4/conf/all/rp_filter"]; got != "1" {
		t.Errorf("rp_filter is %q", got)
	}
}

func TestPendingKeyThatTheModuleDoesNotProvide(t *testing.T) {
	t.Parallel()
	spec := `{"modules":["br_netfilter"],"parameters":{"net.bridge.bridge-nf-call-iptables":1}}`
	b := newFixture(t, nil)
	b.kernel.Modules["br_netfilter"] = machine.ModuleLoadable
	_, err := b.apply(t, spec)
	wantPrecondition(t, err, "net.bridge.bridge-nf-call-iptables", "ignoreMissing")
	if got := b.read(t, ownSysctl); got != "(none)" {
		t.Errorf("the file exists: %q", got)
	}
}

func TestPendingKeyOfIgnoreMissing(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	b.kernel.Modules["br_netfilter"] = machine.ModuleLoadable
	progress, err := b.apply(t, `{"modules":["br_netfilter"],"parameters":{"net.bridge.x":1},"ignoreMissing":["net.bridge.x"]}`)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(progress.reports, "\n"), "skipping net.bridge.x") {
		t.Errorf("got %v", progress.reports)
	}
	if got := b.read(t, ownSysctl); !strings.Contains(got, "\n-net.bridge.x = 1\n") {
		t.Errorf("got %q", got)
	}
}

func TestModuleThatModprobeDoesNotLoad(t *testing.T) {
	t.Parallel()
	err := loadModule(t.Context(), &blacklistedKernel{newKernel()}, "m", &recorder{})
	wantPrecondition(t, err, "yet it is loadable", "modprobe.d")
	var command *machine.CommandError
	if err := loadModule(t.Context(), newKernel(), "m", &recorder{}); !errors.As(err, &command) {
		t.Errorf("modprobe's output is missing: %v", err)
	}
}

// blacklistedKernel is a kernel where modprobe succeeds without loading the module, because of modprobe.d.
type blacklistedKernel struct{ *fakeKernel }

func (*blacklistedKernel) LoadModule(context.Context, string) error {
	return errors.New("modprobe succeeded, yet it is loadable")
}
