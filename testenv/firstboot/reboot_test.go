package firstboot

import (
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const noopHeader = "---\napiVersion: example.com/v1\nkind: Noop\nmetadata: {name: NAME}\nspec: {provider: test, SPEC}\n"

func noop(name, spec string) string {
	return strings.NewReplacer("NAME", name, "SPEC", spec).Replace(noopHeader)
}

// TestReboot: a change in the middle of a stream needs a reboot, the host performs it, and the same command finishes the
// stream afterwards.
func TestReboot(t *testing.T) {
	t.Parallel()
	dir := binaries(t)
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Trixie, Prepare: nodes.InOrder(
		func(root string) error { return install(dir, root) }, atBoot,
		func(root string) error {
			return write(root, "/etc/machineadm/node.yaml",
				noop("before", "touch: [/var/before], reboot: BeforeNext")+noop("after", "touch: [/var/after]"), 0o600)
		},
	)})
	r := lastReport(t, n)
	if r.Outcome != report.RunSucceeded || r.Documents[0].Outcome != report.Unchanged || r.Documents[1].Outcome != report.Changed {
		t.Fatalf("after the reboot: %+v", r)
	}
	n.MustExec(t, "test", "-s", sentinel)
	n.MustExec(t, "test", "!", "-e", "/var/lib/machineadm/reboots.json")
	boots := n.MustExec(t, "sh", "-c", "ls /var/lib/machineadm/reports | wc -l").Stdout
	if strings.TrimSpace(boots) != "2" {
		t.Errorf("%s runs, want two", boots)
	}
	picture := n.MustExec(t, "machineadm", "status", "--timeline").Stdout
	t.Log("\n" + picture)
	for _, row := range []string{"Noop/before (test) ", "Noop/after (test) ", "b boot"} {
		if !strings.Contains(picture, row) {
			t.Errorf("the timeline has no %q:\n%s", row, picture)
		}
	}
}

// TestRebootsEnd: a change that requests a reboot at every boot is stopped, and the report names it.
func TestRebootsEnd(t *testing.T) {
	t.Parallel()
	dir := binaries(t)
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Trixie, Prepare: nodes.InOrder(
		func(root string) error { return install(dir, root) }, atBoot,
		func(root string) error { // /run is empty after a reboot: the change is always missing
			return write(root, "/etc/machineadm/node.yaml", noop("storm", "touch: [/run/storm], reboot: AfterRun"), 0o600)
		},
	)})
	r := lastReport(t, n)
	if r.ExitCode != report.ExitDeadline || len(r.Errors) != 1 || !strings.Contains(r.Errors[0].Message, "reboot 4; at most 3") {
		t.Fatalf("report: %+v", r)
	}
	if out, err := n.Exec(t.Context(), "test", "-e", sentinel); err != nil || out.ExitCode == 0 {
		t.Errorf("there is a sentinel (%v)", err)
	}
}

// TestServiceManagerStopsTheRun: systemctl stop in the middle of a change lets it finish, starts no other, and
// is reported.
func TestServiceManagerStopsTheRun(t *testing.T) {
	t.Parallel()
	dir := binaries(t)
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Trixie, Prepare: nodes.InOrder(
		func(root string) error { return install(dir, root) },
		func(root string) error { return write(root, "/etc/systemd/system/machineadm.service", unit, 0o644) },
		func(root string) error {
			return write(root, "/etc/machineadm/node.yaml", noop("slow", "touch: [/var/one, /var/two], apply: hang"), 0o600)
		},
	)})
	n.MustExec(t, "systemctl", "start", "--no-block", "machineadm")
	n.MustExec(t, "timeout", "600", "sh", "-c", `until grep -qs file:/var/one /run/machineadm/report.json; do sleep 0.05; done`)
	n.MustExec(t, "systemctl", "stop", "machineadm")
	n.MustExec(t, "test", "-e", "/var/one")
	n.MustExec(t, "test", "!", "-e", "/var/two")
	if r := lastReport(t, n); r.Outcome != report.RunInterrupted || r.ExitCode != report.ExitInterrupted {
		t.Errorf("report: %+v", r)
	}
	out := n.MustExec(t, "machineadm", "status").Stdout
	if !strings.HasPrefix(out, "Interrupted") {
		t.Errorf("status:\n%s", out)
	}
}
