package reporting

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting/words"
	"github.com/machineadm/machineadm/host/run"
)

// applied are the events of an apply that ends like this.
func applied(r report.Report) []run.Event {
	events := []run.Event{{Type: run.EventRunStarted, Report: &r}}
	for i := range r.Documents {
		d := &r.Documents[i]
		if d.Plugin != nil {
			events = append(events, run.Event{Type: run.EventDocumentPlanned, Document: d})
		}
	}
	for i := range r.Documents {
		d := &r.Documents[i]
		if d.Outcome == report.Skipped || d.Outcome == "" {
			continue
		}
		if d.Outcome != report.NotApplicable && d.Reason != report.ReasonPhase {
			events = append(events, run.Event{Type: run.EventDocumentStarted, Document: d})
		}
		for k := range d.Changes {
			if c := d.Changes[k]; c.Outcome != report.Deferred {
				events = append(events,
					run.Event{Type: run.EventChangeStarted, Document: d, Change: &pluginv1.Change{ID: c.ID, Summary: c.Summary}},
					run.Event{Type: run.EventChangeFinished, Document: d, Result: &c})
			}
		}
		finished := run.Event{Type: run.EventDocumentFinished, Document: d}
		for _, at := range d.Errors {
			finished.Errors = append(finished.Errors, r.Errors[at])
		}
		events = append(events, finished)
	}
	return times(append(events, run.Event{Type: run.EventRunFinished, Report: &r}))
}

// times gives every event one of its own.
func times(events []run.Event) []run.Event {
	for i := range events {
		events[i].Time = moment().Add(time.Duration(i) * time.Second).In(time.FixedZone("CET", 3600))
	}
	return events
}

// both is what a command wrote to stdout and stderr.
func both(out, errOut fmt.Stringer) string {
	return "# standard output\n" + out.String() + "# standard error\n" + errOut.String()
}

func TestText(t *testing.T) {
	t.Parallel()
	for name, r := range reports() {
		if r.Outcome == report.RunRunning {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errOut strings.Builder
			for _, e := range applied(r) {
				Text{Out: &out, Err: &errOut}.Observe(e)
			}
			golden(t, "text/"+name+".txt", both(&out, &errOut))
		})
	}
}

// talk is what a plugin says on the way.
func talk(message string) []run.Event {
	d := sysctl()
	var events []run.Event
	for _, kind := range []run.EventType{run.EventProgress, run.EventWarning, run.EventRetry} {
		events = append(events, run.Event{Type: kind, Document: &d, Message: message})
	}
	return times(events)
}

func TestTextOnTheWay(t *testing.T) {
	t.Parallel()
	var out, errOut strings.Builder
	d := sysctl()
	running := times([]run.Event{{Type: run.EventChangeRunning, Document: &d, Result: &report.Change{ID: "a", Summary: writeFile, DurationMs: 30000}}})
	for _, e := range slices.Concat(talk("loading 3 of 5 modules"), talk(forged), running) {
		Text{Out: &out, Err: &errOut}.Observe(e)
	}
	golden(t, "text/on the way.txt", both(&out, &errOut))
}

// planEvents are the events of a plan.
func planEvents() []run.Event {
	diff := "--- /etc/sysctl.d/99-machineadm-base.conf\n+++ /etc/sysctl.d/99-machineadm-base.conf\n@@ -1 +1,2 @@\n-a = 1\n+a = 2\n+b =\t<3>\n"
	base, site, corp := sysctl(), timesync(), join()
	base.Warnings = []string{"a is given twice"}
	base.Outcome, site.Outcome = report.Changed, report.Unchanged
	open := report.Document{Index: 3, Kind: "KubernetesNode", Name: "node", Provider: "kubeadm"}
	other := report.Document{Index: 4, Kind: "FooBar", Name: "windows-only", Outcome: report.NotApplicable}
	left := report.Document{Index: 5, Kind: "FooBar", Name: "later", Provider: "x", Outcome: report.Deferred, Reason: report.ReasonPhase}
	corp.Outcome, corp.Reason = report.Deferred, report.ReasonLive
	r := head(report.RunSucceeded, report.ExitDiffers, base, site, corp, open, other, left)
	return times([]run.Event{
		{Type: run.EventRunStarted, Report: &r},
		{Type: run.EventDocumentPlanned, Document: &base, Planned: []run.PlannedChange{
			{Change: pluginv1.Change{ID: "file", Summary: writeFile, Diff: diff}},
			{Change: pluginv1.Change{ID: "secret", Summary: "write /etc/secret", Diff: "content differs", Reboot: pluginv1.RebootBeforeNext}},
			{Change: pluginv1.Change{ID: "value", Summary: setValue, NeedsLive: true, Reboot: pluginv1.RebootAfterRun}, After: "Sysctl/base"},
		}},
		{Type: run.EventDocumentPlanned, Document: &site},
		{Type: run.EventDocumentPlanned, Document: &corp, Planned: []run.PlannedChange{{Change: pluginv1.Change{ID: "join", Summary: "join corp.example.com", NeedsLive: true}}}},
		{Type: run.EventDocumentPlanned, Document: &open, Pending: "containerd is not installed yet"},
		{Type: run.EventRunFinished, Report: &r},
	})
}

func TestPlan(t *testing.T) {
	t.Parallel()
	for name, root := range map[string]string{"live": "", "image": "/mnt/image"} {
		var out, errOut strings.Builder
		for _, e := range planEvents() {
			Plan{Out: &out, Err: &errOut, Root: root}.Observe(e)
		}
		golden(t, "plan/"+name+".txt", both(&out, &errOut))
	}
	var out, errOut strings.Builder
	for _, e := range planEvents() {
		Plan{Out: &out, Err: &errOut, Color: true}.Observe(e)
	}
	golden(t, "plan/color.txt", both(&out, &errOut))
	for _, name := range []string{"invalid", "unreadable", "no plugin"} {
		r := reports()[name]
		var out, errOut strings.Builder
		Plan{Out: &out, Err: &errOut}.Observe(run.Event{Type: run.EventRunFinished, Report: &r})
		golden(t, "plan/"+name+".txt", both(&out, &errOut))
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	var all []run.Event
	all = append(all, planEvents()...)
	all = append(all, talk(forged)...)
	all = append(all, applied(reports()["failed"])...)
	all = append(all, applied(reports()["image"])...)
	var out bytes.Buffer
	for _, e := range all {
		JSON{Out: &out}.Observe(e)
	}
	golden(t, "json/events.jsonl", out.String())
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != len(all) {
		t.Fatalf("%d lines for %d events", len(lines), len(all))
	}
	for i, line := range lines {
		var got struct {
			Type    run.EventType  `json:"type"`
			Message string         `json:"message"`
			Report  *report.Report `json:"report"`
		}
		if words.Escape(line) != line {
			t.Errorf("line %d is not safe to show: %q", i, line)
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Errorf("line %d: %v", i, err)
		}
		if want := strings.ToValidUTF8(all[i].Message, "\ufffd"); got.Message != want {
			t.Errorf("line %d says %q, want %q", i, got.Message, want)
		}
		if got.Type != all[i].Type || (got.Report != nil) != (got.Type == run.EventRunFinished) {
			t.Errorf("line %d is %s with report %v", i, got.Type, got.Report != nil)
		}
	}
}

// TestNoForgedLines compares the number of lines with a correct plugin's, and searches for what a terminal
// would execute.
func TestNoForgedLines(t *testing.T) {
	t.Parallel()
	show := func(text string) string {
		var b strings.Builder
		r := reports()["forged"]
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var same report.Report
		if err := json.Unmarshal([]byte(strings.ReplaceAll(string(data), encoded(t, forged), encoded(t, text))), &same); err != nil {
			t.Fatal(err)
		}
		change := pluginv1.Change{Summary: text, Diff: "one line"}
		d := &same.Documents[0]
		events := append(applied(same), talk(text)...)
		events = append(events, run.Event{Type: run.EventDocumentPlanned, Document: d, Planned: []run.PlannedChange{{Change: change}}, Pending: text})
		for _, e := range events {
			Text{Out: &b, Err: &b}.Observe(e)
			Plan{Out: &b, Err: &b}.Observe(e)
		}
		if err := Status(&b, same, false, false, 0); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	harmless, evil := show("fine"), show(forged)
	if want, got := strings.Count(harmless, "\n"), strings.Count(evil, "\n"); got != want {
		t.Errorf("%d lines became %d:\n%s", want, got, evil)
	}
	for _, line := range strings.Split(evil, "\n") {
		if words.Escape(line) != line {
			t.Errorf("%q is not safe to show", line)
		}
		if strings.HasPrefix(line, "Sysctl/base: changed") {
			t.Errorf("%q is forged", line)
		}
	}
}

func encoded(t *testing.T, text string) string {
	t.Helper()
	data, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestADiffStaysInItsPlace: every line of a diff is indented below its change.
func TestADiffStaysInItsPlace(t *testing.T) {
	t.Parallel()
	for _, diff := range []string{"a\nTimesync/site: nothing to change", "a\rTimesync/site", "\n\n\nTimesync/site\n\n", "a\u2028Timesync/site", "a\x1b[1ATimesync"} {
		var out strings.Builder
		d := sysctl()
		Plan{Out: &out, Err: &out}.Observe(run.Event{
			Type: run.EventDocumentPlanned, Document: &d, Planned: []run.PlannedChange{{Change: pluginv1.Change{Summary: "write", Diff: diff}}},
		})
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		for _, line := range lines[2:] {
			if !strings.HasPrefix(line, "      ") || strings.ContainsAny(line, "\r\x1b\u2028") {
				t.Errorf("%q left its place", line)
			}
		}
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	var documents []report.Document
	for i, o := range []report.Outcome{
		report.Changed, report.Unchanged, report.Deferred, report.NotApplicable, report.Failed, report.Skipped, report.RebootRequired, "",
	} {
		for range i + 1 {
			documents = append(documents, report.Document{Outcome: o})
		}
	}
	r := head(report.RunFailed, 1, documents...)
	if got, want := words.Summary(&r), "Failed: 36 documents: 1 changed, 2 unchanged, 3 deferred, 4 not applicable, 7 reboot needed, 5 failed, 6 skipped"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := PlanSummary(&r), "Failed: 36 documents: 1 to change, 2 unchanged, 3 deferred, 8 pending, 4 not applicable, 5 failed, 6 skipped"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	design := head(report.RunSucceeded, 0, documents[0], documents[0], documents[1])
	if got, want := PlanSummary(&design), "3 documents: 2 to change, 1 unchanged, 0 deferred"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	one := head(report.RunSucceeded, 0, documents[0])
	if got, want := ValidSummary(&one), "1 document: no configuration errors"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]report.Error{
		"node.yaml:7:5: Sysctl/base: spec.x: wrong": {File: "node.yaml", Line: 7, Column: 5, Document: "Sysctl/base", Field: "spec.x", Message: "wrong"},
		"node.yaml:7: wrong":                        {File: "node.yaml", Line: 7, Message: "wrong"},
		"node.yaml: wrong":                          {File: "node.yaml", Message: "wrong"},
		"error: Sysctl/base: wrong":                 {Document: "Sysctl/base", Message: "wrong"},
		`a\nb:1:2: c\nd: e\nf: g\nh`:                {File: "a\nb", Line: 1, Column: 2, Document: "c\nd", Field: "e\nf", Message: "g\nh"},
	} {
		if got := errorText(e); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for ms, want := range map[int64]string{0: "under 1ms", 1: "1ms", 1234: "1.234s", 12345: "12.3s", 754321: "12m34s", 3600000: "1h", 60000: "1m", 5400000: "1h30m", 3601000: "1h0m1s"} {
		if got := words.Duration(ms); got != want {
			t.Errorf("%d is %s, want %s", ms, got, want)
		}
	}
}

func TestClosedPipe(t *testing.T) {
	t.Parallel()
	for _, e := range slices.Concat(applied(reports()["failed"]), planEvents()) {
		Text{Out: broken{}, Err: broken{}}.Observe(e)
		Plan{Out: broken{}, Err: broken{}}.Observe(e)
		JSON{Out: broken{}}.Observe(e)
	}
}
