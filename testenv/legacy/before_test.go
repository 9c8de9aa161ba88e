package legacy

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/report"
)

// TestPluginOfTheReleaseBefore: today's host plans and applies with yesterday's plugin, and finds what it did.
func TestPluginOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	b := newBench(t, before, provider)
	stream := doc("a", "touch: [etc/a, etc/b], content: new, warn: of old, field: spec.warn") + doc("b", "touch: [etc/c]")
	plan := b.host("plan", stream)
	for _, want := range []string{"write etc/a", "+new", "2 documents: 2 to change, 0 unchanged, 0 deferred"} {
		if plan.code != report.ExitDiffers || !strings.Contains(plan.stdout, want) {
			t.Errorf("plan without %q: %s", want, plan)
		}
	}
	got := b.host("apply", stream)
	if got.code != report.ExitOK || got.outcomes() != "Changed Changed" {
		t.Fatalf("%s", got)
	}
	first := got.report.Documents[0]
	if first.Plugin.Version != "0.0.0-noop" || strings.Join(first.Warnings, "|") != "spec.warn: of old" || len(first.Changes) != 2 {
		t.Errorf("document %+v", first)
	}
	if data, err := os.ReadFile(filepath.Join(b.root, "etc/b")); err != nil || string(data) != "new" {
		t.Errorf("etc/b holds %q, %v", data, err)
	}
	if got := b.host("apply", stream); got.code != report.ExitOK || got.outcomes() != "Unchanged Unchanged" {
		t.Errorf("once more: %s", got)
	}
	if got := b.host("apply", doc("a", "touch: [etc/live], live: true")); got.code != report.ExitOK || got.outcomes() != "Deferred" {
		t.Errorf("what needs the live machine: %s", got)
	}
}

// TestErrorsOfTheReleaseBefore: each code keeps its meaning.
func TestErrorsOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	const until = "touch: [etc/a], field: spec.touch, "
	for name, test := range map[string]struct {
		spec       string
		args       []string
		exit       int
		code, says string
	}{
		"InvalidConfig of Plan":      {spec: until + "plan: invalid", exit: report.ExitUsage, code: "InvalidConfig", says: "stream.yaml:5:8: Noop/a: spec.touch: noop does not like it\n  hint: use another value"},
		"Unsupported of Plan":        {spec: until + "plan: unsupported", exit: report.ExitPrecondition, code: "Unsupported", says: "noop says unsupported"},
		"Precondition of Plan":       {spec: until + "plan: precondition", exit: report.ExitPrecondition, code: "Precondition", says: "hint: ask noop for something else"},
		"Retry of Plan":              {spec: until + "plan: retry", args: []string{"--timeout", "6s"}, exit: report.ExitDeadline, code: "Deadline", says: "noop says retry"},
		"Internal of Plan":           {spec: until + "plan: internal", exit: report.ExitFailed, code: "Internal", says: "noop says internal"},
		"a status without a detail":  {spec: until + "plan: plain", exit: report.ExitFailed, code: "Internal", says: "FailedPrecondition"},
		"InvalidConfig of Apply":     {spec: until + "apply: invalid", exit: report.ExitFailed, code: "InvalidConfig", says: "stream.yaml:5:8: Noop/a: spec.touch: noop does not like it"},
		"Unsupported of Apply":       {spec: until + "apply: unsupported", exit: report.ExitPrecondition, code: "Unsupported", says: "noop says unsupported"},
		"Precondition of Apply":      {spec: until + "apply: precondition", exit: report.ExitPrecondition, code: "Precondition", says: "noop says precondition"},
		"Retry of Apply":             {spec: until + "apply: retry", args: []string{"--timeout", "6s"}, exit: report.ExitDeadline, code: "Deadline", says: "noop says retry"},
		"Internal of Apply":          {spec: until + "apply: internal", exit: report.ExitFailed, code: "Internal", says: "noop says internal"},
		"a retry that is worth it":   {spec: until + "plan: retry, planUntil: ready"},
		"a retry of Apply, likewise": {spec: until + "apply: retry, applyUntil: ready"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, before, provider)
			stream := doc("a", test.spec)
			if test.code == "" { // an earlier document makes it possible
				stream = doc("first", "touch: [ready]") + stream
			}
			got := b.host("apply", stream, test.args...)
			if got.code != test.exit || !strings.Contains(got.stdout+got.stderr, test.says) {
				t.Fatalf("want exit %d with %q: %s", test.exit, test.says, got)
			}
			if test.code == "" {
				if got.outcomes() != "Changed Changed" {
					t.Errorf("%s", got)
				}
				return
			}
			if len(got.report.Errors) == 0 || got.report.Errors[0].Code != test.code {
				t.Errorf("%s", got)
			}
			if b.has("etc/a") {
				t.Error("the change was made all the same")
			}
		})
	}
}

// TestInterruptOfTheReleaseBefore: Stop reaches yesterday's plugin, which finishes the change in hand and starts no other.
func TestInterruptOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	b := newBench(t, before, provider)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := b.command(ctx, "apply", doc("a", "touch: [one, two], apply: hang")+doc("b", "touch: [three]"))
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the change has begun", func() bool {
		data, err := os.ReadFile(filepath.Join(b.run, "report.json"))
		return err == nil && strings.Contains(string(data), "file:one")
	})
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // the exit code is checked
	if c.ProcessState.ExitCode() != report.ExitInterrupted || b.report().Outcome != report.RunInterrupted {
		t.Errorf("exit %d, report %+v", c.ProcessState.ExitCode(), b.report())
	}
	if !b.has("one") || b.has("two") || b.has("three") {
		t.Error("not exactly the change in hand was finished")
	}
	if got := b.host("apply", doc("a", "touch: [one, two]")); got.code != report.ExitOK || !b.has("two") {
		t.Errorf("the next run: %s", got)
	}
}
