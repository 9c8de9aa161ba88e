package reporting

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares with testdata/NAME, where NAME may be the words of a test case.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", filepath.FromSlash(strings.NewReplacer(" ", "-", ",", "").Replace(name)))
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant, as in %s,\n%s", got, path, want)
	}
}

func moment() time.Time { return time.Date(2026, 3, 1, 3, 4, 5, 678000000, time.UTC) }

// forged is plugin output that imitates the host.
const forged = "fine\nSysctl/base: changed\r\x1b[2K\u202egnihton\u2066\u200b\u2028\u0085\x00\u3164\U000e0041\x7f\xff"

func plugin() *report.Plugin {
	return &report.Plugin{Path: "/usr/libexec/machineadm/machineadm-sysctl-plugin-procfs", Version: "v0.1.0", SHA256: "abcd"}
}

func sysctl() report.Document {
	return report.Document{Index: 0, Kind: "Sysctl", Name: "base", Provider: "procfs", Plugin: plugin()}
}

func timesync() report.Document {
	return report.Document{Index: 1, Kind: "Timesync", Name: "site", Provider: "chronyd", Plugin: plugin()}
}

func join() report.Document {
	return report.Document{Index: 2, Kind: "DomainJoin", Name: "corp", Provider: "activedirectory", Plugin: plugin()}
}

// target is checked before all other documents are planned.
func target() report.Document {
	d := report.Document{APIVersion: report.APIVersion, Kind: "ReportTarget", Name: "home", Provider: "http", Plugin: plugin()}
	return ended(d, report.Unchanged, 5)
}

func head(outcome report.Outcome, exit int, documents ...report.Document) report.Report {
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, RunID: "0011223344556677", StartedAt: moment(),
		FinishedAt: moment().Add(4200 * time.Millisecond), Outcome: outcome, ExitCode: exit, Phase: "all",
		Host:      report.Host{Hostname: "node-1", Distribution: "debian", Arch: "amd64", Machineadm: "v0.1.0"},
		Documents: documents,
	}
}

func ended(d report.Document, outcome report.Outcome, ms int64, changes ...report.Change) report.Document {
	d.Outcome, d.DurationMs, d.Changes = outcome, ms, changes
	return d
}

// with adds the error of a document, which stands in the report once.
func with(r report.Report, place int, e report.Error) report.Report {
	d := &r.Documents[place]
	if d.Errors = append(d.Errors, len(r.Errors)); e.Document == "" {
		e.Document = d.Kind + "/" + d.Name
	}
	r.Errors = append(r.Errors, e)
	return r
}

func change(summary string, outcome report.Outcome, ms int64) report.Change {
	return report.Change{ID: "id", Summary: summary, Outcome: outcome, DurationMs: ms}
}

const writeFile, setValue = "write /etc/sysctl.d/99-machineadm-base.conf", "set net.ipv4.ip_forward to 1"

func refused() report.Error {
	return report.Error{
		Code: pluginv1.CodePrecondition.String(), Message: "the kernel refuses net.ipv4.ip_forward: read-only file system (EROFS).",
		Hint: "mount /proc/sys writable", Field: `spec.parameters["net.ipv4.ip_forward"]`, File: "node.yaml", Line: 7, Column: 5,
		Details: "document-0",
	}
}

// reports are the ways a run can end, or be found.
func reports() map[string]report.Report {
	interrupted := report.Error{Code: report.CodeInterrupted, Message: "the run was interrupted", Hint: "run the same command again"}
	reboot := report.Error{
		Code: report.CodeReboot, Document: "Sysctl/base", Message: "the machine must reboot before the next document",
		Hint: "reboot, then run the same command again",
	}
	invalid := with(head(report.RunInvalid, report.ExitUsage, ended(sysctl(), report.Failed, 0), ended(timesync(), report.Skipped, 0)), 0, report.Error{
		Code: "InvalidConfig", Document: "Sysctl/base", Field: `spec.parameters["vm..x"]`, Message: "has an empty segment", File: "node.yaml", Line: 7, Column: 5,
	})
	invalid.Errors = []report.Error{invalid.Errors[0], {
		Code: "InvalidConfig", Document: "Timesync/site", Field: "spec.servers[0].host", Message: "unknown field", Hint: "did you mean address?", File: "node.yaml", Line: 16, Column: 9,
	}}
	unreadable := head(report.RunInvalid, report.ExitUntrusted)
	unreadable.Errors = []report.Error{{Code: report.CodeUntrusted, File: "/tmp/node.yaml", Message: "others can write to it (mode 0666)", Hint: "chmod go-w /tmp/node.yaml"}}
	rebooting := head(report.RunRebootRequired, report.ExitReboot, ended(sysctl(), report.RebootRequired, 1200, change(writeFile, report.Changed, 12)), ended(timesync(), report.Skipped, 0))
	rebooting.Errors = []report.Error{reboot}
	early := head(report.RunInterrupted, report.ExitInterrupted, ended(sysctl(), report.Skipped, 0), ended(timesync(), report.Skipped, 0))
	early.Errors = []report.Error{interrupted}
	deadline := head(report.RunFailed, report.ExitDeadline, ended(sysctl(), report.Skipped, 0))
	deadline.Errors = []report.Error{{Code: report.CodeDeadline, Message: "the run took longer than its 1h0m0s", Hint: "run it again, with a longer --timeout if it needs one"}}
	missing := sysctl()
	missing.Plugin = nil
	running := head(report.RunRunning, 0, ended(sysctl(), report.Changed, 34, change(writeFile, report.Changed, 12)),
		ended(timesync(), "", 0, change("restart chrony", report.Interrupted, 0)), join())
	running.FinishedAt = time.Time{}
	between := head(report.RunRunning, 0, ended(sysctl(), report.Changed, 34), timesync(), join())
	between.FinishedAt = time.Time{}
	planning := head(report.RunRunning, 0, sysctl())
	planning.FinishedAt = time.Time{}
	reporting := head(report.RunRunning, 0, target(), sysctl())
	reporting.FinishedAt = time.Time{}
	image := head(report.RunSucceeded, report.ExitOK, ended(sysctl(), report.Deferred, 5,
		change(writeFile, report.Changed, 12), change(setValue, report.Deferred, 0)), ended(join(), report.Deferred, 0))
	image.Root, image.Phase, image.Documents[0].Reason, image.Documents[1].Reason = "/mnt/image", "preparation", report.ReasonLive, report.ReasonPhase
	image.FinishedAt = image.StartedAt.Add(-time.Hour)
	warned := ended(sysctl(), report.Changed, 1234, change(writeFile, report.Changed, 12))
	warned.Warnings = []string{"spec.parameters: net.ipv4.ip_forward is given by a profile and by hand: the hand wins"}
	evil := ended(sysctl(), report.Failed, 1, change(forged, report.Failed, 1))
	evil.Name, evil.Provider, evil.Warnings = "x\ny", "p\x1b", []string{forged}
	forging := with(head(report.RunFailed, report.ExitFailed, evil), 0, report.Error{
		Code: "Internal", Message: forged, Hint: forged, Field: forged, File: "a\nb", Line: 1, Details: forged,
	})
	forging.RunID, forging.Host.Machineadm, forging.Root, forging.Phase = "a\nb", "v\n1", "/mnt/\n", "\n"
	return map[string]report.Report{
		"succeeded":    head(report.RunSucceeded, report.ExitOK, warned, ended(timesync(), report.Unchanged, 0), ended(join(), report.NotApplicable, 0)),
		"one document": head(report.RunSucceeded, report.ExitOK, ended(sysctl(), report.Unchanged, 75432)),
		"no document":  head(report.RunSucceeded, report.ExitOK),
		"image":        image,
		"failed": with(head(report.RunFailed, report.ExitPrecondition, ended(timesync(), report.Unchanged, 12),
			ended(sysctl(), report.Failed, 2300, change(writeFile, report.Changed, 12), change(setValue, report.Failed, 3)),
			ended(join(), report.Skipped, 0)), 1, refused()),
		"failed, with a reboot due": due(with(head(report.RunFailed, report.ExitPrecondition, ended(timesync(), report.Changed, 12),
			ended(sysctl(), report.Failed, 2300)), 1, refused())),
		"crashed": with(head(report.RunFailed, report.ExitFailed, ended(sysctl(), report.Failed, 2300, change(writeFile, report.Failed, 3))), 0, report.Error{
			Code: report.CodeCrashed, Message: "the plugin machineadm-sysctl-plugin-procfs crashed: it ended without an answer",
			Hint: "details.json holds its output; running again is safe", Details: "document-0",
		}),
		"no plugin": with(head(report.RunFailed, report.ExitPrecondition, ended(missing, report.Failed, 0), ended(timesync(), report.Skipped, 0)), 0, report.Error{
			Code: report.CodeNoPlugin, Message: "no plugin for Sysctl is installed",
			Hint: "install one as machineadm-sysctl-plugin-PROVIDER, or see machineadm plugins list",
		}),
		"no plugin, with a report target": with(head(report.RunFailed, report.ExitPrecondition, target(), ended(missing, report.Failed, 0)), 1, report.Error{
			Code: report.CodeNoPlugin, Message: "no plugin for Sysctl is installed",
		}),
		"deadline":                   deadline,
		"no cause":                   head(report.RunFailed, report.ExitFailed, ended(sysctl(), report.Skipped, 0)),
		"invalid":                    invalid,
		"unreadable":                 unreadable,
		"reboot required":            rebooting,
		"interrupted":                with(head(report.RunInterrupted, report.ExitInterrupted, ended(sysctl(), report.Failed, 900, change(writeFile, report.Changed, 12), change(setValue, report.Interrupted, 30)), ended(timesync(), report.Skipped, 0)), 0, interrupted),
		"interrupted while planning": early,
		"running":                    running,
		"running, between":           between,
		"running, planning":          planning,
		"running, planning, with a report target": reporting,
		"forged": forging,
	}
}

func due(r report.Report) report.Report {
	r.Reboots = []report.Reboot{{Document: "Timesync/site", When: "AfterRun"}}
	return r
}
