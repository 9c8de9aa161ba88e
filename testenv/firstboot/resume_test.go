package firstboot

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const (
	kept       = "/var/lib/machineadm/resume.json"
	rests      = "/var/lib/machineadm/resume-failed.json"
	resumeUnit = "/etc/systemd/system/machineadm-resume.service"
	canary     = "c4n4ry-0f-a-kept-stream"
)

// seeded passes a stream through cloud-init, in /run: after a reboot it is gone, and cloud-init does not write it
// again.
func seeded(text string) func(root string) error {
	return nodes.CloudInitSeed(fmt.Sprintf(`#cloud-config
write_files:
  - encoding: b64
    content: %s
    path: /run/node.yaml
    permissions: '0600'
runcmd:
  - /usr/bin/machineadm --bootstrap --path /run/node.yaml
`, base64.StdEncoding.EncodeToString([]byte(text))))
}

// boot boots a node with the product, and follows its reboots.
func boot(t *testing.T, prepare ...func(root string) error) *nodes.Node {
	t.Helper()
	dir := binaries(t)
	return nodes.Boot(t, nodes.Options{Suite: nodes.Trixie, Prepare: nodes.InOrder(append([]func(string) error{
		func(root string) error { return install(dir, root) },
	}, prepare...)...)})
}

func gone(t *testing.T, n *nodes.Node, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if r, err := n.Exec(t.Context(), "test", "-e", path); err != nil || r.ExitCode == 0 {
			t.Errorf("%s is there (%v)", path, err)
		}
	}
}

// TestResume: a document in the middle of a stream needs a reboot before the next; the run ends by itself afterwards,
// without the stream, and leaves nothing behind.
func TestResume(t *testing.T) {
	t.Parallel()
	n := boot(t, seeded(noop("before", "touch: [/var/before], reboot: BeforeNext, token: {value: "+canary+"}")+
		noop("between", "touch: [/var/between]")+noop("last", "touch: [/var/last], reboot: AfterRun")+"---\n"+stream),
		func(root string) error { // ignored, because PID 1 is systemd
			return write(root, initHook, "#!/bin/sh\ntouch /var/hook\nexit 1\n", 0o777)
		})
	r := lastReport(t, n)
	if r.Outcome != report.RunSucceeded || len(r.Documents) != 5 || r.Resume != "" {
		t.Fatalf("after the reboots: %+v", r)
	}
	live(t, n)
	n.MustExec(t, "test", "-s", sentinel)
	gone(t, n, "/run/node.yaml", kept, resumeUnit, filepath.Join(filepath.Dir(resumeUnit), "multi-user.target.wants/machineadm-resume.service"),
		"/var/lib/machineadm/reboots.json", "/var/hook")
	if got := strings.Fields(n.MustExec(t, "ls", "/var/lib/machineadm/reports").Stdout); len(got) != 3 {
		t.Errorf("%d runs, want three: %v", len(got), got)
	}
	if got := strings.TrimSpace(n.MustExec(t, "systemctl", "is-system-running").Stdout); got != "running" {
		t.Errorf("the node is %s:\n%s", got, n.MustExec(t, "systemctl", "--failed").Stdout)
	}
	// grep exits with 1: nowhere on the disk, the log included, but in what cloud-init keeps of its user data.
	found, err := n.Exec(t.Context(), "grep", "-rlI", canary, "/var/lib/machineadm", "/run/machineadm", "/etc", "/var/log")
	if err != nil || found.ExitCode != 1 {
		t.Errorf("the secret of the stream is left (%v):\n%s", err, found.Stdout)
	}
	if log := n.MustExec(t, "journalctl", "--no-pager", "-u", "machineadm-resume").Stdout; strings.Contains(log, canary) ||
		!strings.Contains(log, "Succeeded: 5 documents") || !strings.Contains(log, "rebooting; the run resumes after the reboot") {
		t.Errorf("the log of the resumed runs:\n%s", log)
	}
}

// TestRebootStorm: documents A, B and A again request reboots; the fourth is refused, and the report gives the reason.
func TestRebootStorm(t *testing.T) {
	t.Parallel()
	n := boot(t, seeded(noop("a", "touch: [/var/a], reboot: BeforeNext")+noop("b", "touch: [/var/b], reboot: BeforeNext")+noop("c", "touch: [/var/c]")),
		func(root string) error { // reverts both at the boot after B, as two conflicting settings would
			if err := write(root, "/etc/systemd/system/undo.service", `[Unit]
ConditionPathExists=/var/b
[Service]
Type=oneshot
ExecStart=/bin/rm /var/a /var/b
`, 0o644); err != nil {
				return err
			}
			wants := filepath.Join(root, "/etc/systemd/system/multi-user.target.wants")
			if err := os.MkdirAll(wants, 0o755); err != nil {
				return err
			}
			return os.Symlink("/etc/systemd/system/undo.service", filepath.Join(wants, "undo.service"))
		})
	r := lastReport(t, n)
	if r.ExitCode != report.ExitDeadline || r.Resume != report.ResumeByHand || len(r.Errors) != 1 ||
		!strings.Contains(r.Errors[0].Message, "reboot 4; at most 3") {
		t.Fatalf("report: %+v", r)
	}
	if got := strings.Fields(n.MustExec(t, "ls", "/var/lib/machineadm/reports").Stdout); len(got) != 4 {
		t.Errorf("%d runs, want four: %v", len(got), got)
	}
	gone(t, n, sentinel, "/var/c", resumeUnit)
	console := n.MustExec(t, "journalctl", "--no-pager", "-u", "machineadm-resume").Stdout
	if !strings.Contains(console, "the stream asks for reboot 4; at most 3 are made") {
		t.Errorf("the reason is missing in the log:\n%s", console)
	}
	status := n.MustExec(t, "machineadm", "status").Stdout
	if !strings.HasPrefix(status, "Failed while applying: the stream asks for reboot 4") || !strings.Contains(status, "machineadm apply --resume") {
		t.Errorf("status:\n%s", status)
	}
}

// TestResumeByHand: a run that fails after the reboot can be resumed after a fix, without the stream; nothing starts by
// itself.
func TestResumeByHand(t *testing.T) {
	t.Parallel()
	n := boot(t, seeded(noop("before", "touch: [/var/before], reboot: BeforeNext")+
		noop("needs", "touch: [/var/needs], apply: fail, applyUntil: /etc/fixed")))
	r := lastReport(t, n)
	if r.ExitCode != report.ExitPrecondition || r.Resume != report.ResumeByHand || r.Documents[0].Outcome != report.Unchanged {
		t.Fatalf("report: %+v", r)
	}
	gone(t, n, kept, resumeUnit, sentinel)
	if got := strings.TrimSpace(n.MustExec(t, "stat", "-c", "%a %U", rests).Stdout); got != "600 root" {
		t.Errorf("the kept stream: %s", got)
	}
	again, err := n.Exec(t.Context(), "machineadm", "apply", "--resume")
	if err != nil || again.ExitCode != report.ExitPrecondition || !strings.Contains(again.Stderr, "to resume: machineadm apply --resume") ||
		!strings.Contains(again.Stderr, "/run/node.yaml:") {
		t.Errorf("again: exit %d (%v)\n%s", again.ExitCode, err, again.Stderr)
	}
	n.MustExec(t, "touch", "/etc/fixed")
	if out := n.MustExec(t, "machineadm", "apply", "--resume").Stdout; !strings.Contains(out, "Succeeded: 2 documents: 1 changed, 1 unchanged") {
		t.Errorf("after the fix:\n%s", out)
	}
	n.MustExec(t, "test", "-s", sentinel)
	gone(t, n, kept, rests, resumeUnit)
	if out := n.MustExec(t, "machineadm", "apply", "--resume").Stdout; out != "nothing to resume in /var/lib/machineadm\n" {
		t.Errorf("with nothing left: %q", out)
	}
}

// TestCloneOfAWaitingMachine: a disk image that was taken while a run waited for its reboot. On the clone the run is
// void: it is neither resumed nor kept.
func TestCloneOfAWaitingMachine(t *testing.T) {
	t.Parallel()
	n := boot(t,
		func(root string) error { // so that the reboot is requested and does not happen
			return os.Symlink("/dev/null", filepath.Join(root, "/etc/systemd/system/reboot.target"))
		},
		func(root string) error {
			return write(root, "/run.yaml", noop("before", "touch: [/var/before], reboot: BeforeNext")+noop("after", "touch: [/var/after]"), 0o600)
		})
	apply := func(argv ...string) nodes.Result {
		t.Helper()
		r, err := n.Exec(t.Context(), append([]string{"machineadm"}, argv...)...)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := apply("--bootstrap", "--path", "/run.yaml"); r.ExitCode != report.ExitReboot || !strings.Contains(r.Stderr, "the reboot failed") {
		t.Fatalf("exit %d:\n%s", r.ExitCode, r.Stderr)
	}
	n.MustExec(t, "test", "-f", resumeUnit)
	// In the same boot neither the same command nor a resume may continue past the document that needs the reboot.
	for _, again := range [][]string{{"apply", "--resume"}, {"apply", "--path", "/run.yaml"}} {
		if r := apply(again...); r.ExitCode != report.ExitReboot || !strings.Contains(r.Stderr, "must reboot before the next document") {
			t.Errorf("%q: exit %d\n%s", again, r.ExitCode, r.Stderr)
		}
	}
	gone(t, n, "/var/after")
	n.MustExec(t, "sh", "-c", "rm /var/before /etc/systemd/system/reboot.target && systemctl daemon-reload && tr 0-9a-f 1-9a-f0 </etc/machine-id >/run/id && cat /run/id >/etc/machine-id")
	if err := n.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone(t, n, "/var/before", "/var/after", kept, resumeUnit, sentinel)
	if got := strings.TrimSpace(n.MustExec(t, "systemctl", "show", "-P", "NFailedUnits").Stdout); got != "0" {
		t.Errorf("%s units have failed:\n%s", got, n.MustExec(t, "systemctl", "--failed").Stdout)
	}
}
