package machinetest_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// recorder records failures instead of failing the test.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Failed() bool { return len(r.failures) > 0 }

func (r *recorder) Errorf(format string, arguments ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, arguments...))
}

func TestRunnerAnswersFromItsScript(t *testing.T) {
	t.Parallel()
	r := machinetest.NewRunner(t)
	r.On("chronyd -v", machine.Result{Stdout: []byte("4.3")})
	r.On("systemctl ...", machine.Result{})
	r.On("systemctl restart ...", machine.Result{ExitCode: 5, Stderr: []byte("no such unit")})
	ctx := context.Background()
	result, err := r.Run(ctx, machine.Command{Name: "chronyd", Args: []string{"-v"}})
	if err != nil || string(result.Stdout) != "4.3" {
		t.Errorf("result %q, %v", result.Stdout, err)
	}
	_, err = r.Run(ctx, machine.Command{Name: "systemctl", Args: []string{"restart", "x"}})
	if failure, ok := errors.AsType[*machine.CommandError](err); !ok || failure.ExitCode != 5 || failure.Stderr != "no such unit" {
		t.Errorf("error %v, want exit code 5 with its output", err)
	}
	if _, err := r.Run(ctx, machine.Command{Name: "systemctl", Args: []string{"restart", "x"}, OK: []int{5}}); err != nil {
		t.Errorf("error %v for an exit code that the command expects", err)
	}
	if got := strings.Join(r.Lines(), "; "); got != "chronyd -v; systemctl restart x; systemctl restart x" {
		t.Errorf("recorded %s", got)
	}
}

func TestRunnerFailsTheTestOnAnUnknownCommand(t *testing.T) {
	t.Parallel()
	failing := &recorder{TB: t}
	r := machinetest.NewRunner(failing)
	if _, err := r.Run(context.Background(), machine.Command{Name: "reboot"}); err == nil {
		t.Error("no error")
	}
	if len(failing.failures) != 1 || !strings.Contains(failing.failures[0], "reboot") {
		t.Errorf("failures %q, want one that names the command", failing.failures)
	}
}

func TestRunnerFind(t *testing.T) {
	t.Parallel()
	r := machinetest.NewRunner(t)
	r.On("chronyd -v", machine.Result{})
	r.On("ntpd ...", machine.Result{})
	r.Absent("ntpd")
	if _, err := r.Find("chronyd"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"ntpd", "unknown"} {
		if _, err := r.Find(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Find(%s) = %v, want fs.ErrNotExist", name, err)
		}
	}
}

func TestKernel(t *testing.T) {
	t.Parallel()
	k := machinetest.NewKernel(map[string]string{"vm/swappiness": "60", "kernel/panic": "0"})
	k.Refuse["kernel/panic"] = syscall.EINVAL
	k.Modules["br_netfilter"] = machine.ModuleLoadable
	k.Appears["br_netfilter"] = map[string]string{"net/bridge/bridge-nf-call-iptables": "0"}
	if err := k.SetParameter("kernel/panic", "x"); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("error %v, want EINVAL", err)
	}
	if _, err := k.Parameter("net/bridge/bridge-nf-call-iptables"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v before the module is loaded, want fs.ErrNotExist", err)
	}
	if err := k.LoadModule(context.Background(), "br-netfilter"); err != nil {
		t.Fatal(err)
	}
	if err := k.SetParameter("net/bridge/bridge-nf-call-iptables", "1"); err != nil {
		t.Error(err)
	}
	if value, err := k.Parameter("net/bridge/bridge-nf-call-iptables"); err != nil || value != "1" {
		t.Errorf("value %q, %v", value, err)
	}
	if got := fmt.Sprint(k.Writes(), k.Loads()); got != "[{kernel/panic x} {net/bridge/bridge-nf-call-iptables 1}] [br_netfilter]" {
		t.Errorf("recorded %s", got)
	}
}

func TestServices(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := machinetest.NewServices()
	s.Put("chrony", machine.ServiceState{})
	s.Failures["reload chrony.service"] = errors.New("no")
	if err := errors.Join(s.SetEnabled(ctx, "chrony", true), s.Do(ctx, "chrony", machine.Restart)); err != nil {
		t.Fatal(err)
	}
	first, err := s.State(ctx, "chrony.service")
	if err != nil || !first.Exists || !first.Enabled || first.Active != "active" || first.InvocationID == "" {
		t.Errorf("state %+v, %v", first, err)
	}
	if err := s.Do(ctx, "chrony", machine.Restart); err != nil {
		t.Fatal(err)
	}
	if second, err := s.State(ctx, "chrony"); err != nil || second.InvocationID == first.InvocationID {
		t.Errorf("a restart left the invocation the same (%v)", err)
	}
	if err := s.Do(ctx, "chrony", machine.Reload); err == nil {
		t.Error("a scripted failure did not fail")
	}
	if err := s.Do(ctx, "absent", machine.Start); err == nil {
		t.Error("a unit that is not installed was started")
	}
}

func TestTreeAndDiff(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	if f.Machine.Offline() {
		t.Error("the fixture is offline")
	}
	f.WriteFiles(t, map[string]string{"/etc/a.conf": "1", "/etc/a dir/b": "2", "/etc/z": "3"})
	before := machinetest.Tree(t, f.Root)
	if got := machinetest.Diff(before, before); got != "" {
		t.Errorf("a tree differs from itself:\n%s", got)
	}
	f.WriteFiles(t, map[string]string{"/etc/a.conf": "changed"})
	if err := errors.Join(f.Machine.FS.Remove("/etc/z"), f.Machine.FS.Symlink("z", "/etc/link"),
		f.Machine.FS.WriteFile("/etc/a dir/b", []byte("2"), 0o600)); err != nil {
		t.Fatal(err)
	}
	var signs []string
	for line := range strings.Lines(machinetest.Diff(before, machinetest.Tree(t, f.Root))) {
		mode, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		signs = append(signs, mode[:1]+" "+path)
	}
	got := strings.Join(signs, "\n")
	want := "- /etc/a dir/b d4735e3a265e 1\n- /etc/a.conf 6b86b273ff34 1\n- /etc/z 4e07408562be 1\n" +
		"+ /etc/a dir/b d4735e3a265e 1\n+ /etc/a.conf d67e2e944994 7\n+ /etc/link -> z"
	if got != want {
		t.Errorf("the difference is\n%s\nwant\n%s", got, want)
	}
}

func TestImageIsOffline(t *testing.T) {
	t.Parallel()
	m, root := machinetest.NewImage(t)
	if !m.Offline() {
		t.Error("an image root is not offline")
	}
	if _, err := m.Commands.Run(context.Background(), machine.Command{Name: "true"}); !errors.Is(err, machine.ErrOffline) {
		t.Errorf("error %v, want ErrOffline", err)
	}
	if err := m.State.Save("intent", []byte("x")); err != nil {
		t.Error(err)
	}
	if got := machinetest.Tree(t, root); got != "" {
		t.Errorf("an unused image has changed:\n%s", got)
	}
}
