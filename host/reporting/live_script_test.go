package reporting

import (
	"fmt"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run"
)

// scene is a moment of a run worth a look: what has happened since the last one, and how much later it is looked at.
type scene struct {
	name   string
	events []run.Event
	after  time.Duration
}

// script writes a run down. Like the run itself, it changes the documents that its events point to.
type script struct {
	now    time.Time
	report report.Report
	events []run.Event
}

func (s *script) say(e run.Event) {
	e.Time = s.now
	s.events = append(s.events, e)
}

// changeID is how a plugin could call a change.
func changeID(summary string) string {
	return strings.NewReplacer("write ", "file:", "join ", "join:", " ", "-").Replace(summary)
}

func (s *script) document(i int) *report.Document { return &s.report.Documents[i] }

// planned is a copy: the list must not keep the original.
func (s *script) planned(i int, pending string, changes ...string) {
	d := *s.document(i)
	e := run.Event{Type: run.EventDocumentPlanned, Document: &d, Pending: pending}
	for _, c := range changes {
		e.Planned = append(e.Planned, pluginv1.Change{ID: changeID(c), Summary: c})
	}
	s.say(e)
}

func (s *script) started(i int) {
	d := *s.document(i)
	s.say(run.Event{Type: run.EventDocumentStarted, Document: &d})
}

func (s *script) doing(i int, change string) {
	d := *s.document(i)
	s.say(run.Event{Type: run.EventChangeStarted, Document: &d, Change: &pluginv1.Change{ID: changeID(change), Summary: change}})
}

func (s *script) done(i int, change string, outcome report.Outcome, ms int64) {
	c := report.Change{ID: changeID(change), Summary: change, Outcome: outcome, DurationMs: ms}
	s.document(i).Changes = append(s.document(i).Changes, c)
	d := *s.document(i)
	s.say(run.Event{Type: run.EventChangeFinished, Document: &d, Result: &c})
}

func (s *script) word(kind run.EventType, i int, message string) {
	d := *s.document(i)
	s.say(run.Event{Type: kind, Document: &d, Message: message})
}

func (s *script) finished(i int, outcome report.Outcome, ms int64) {
	d := s.document(i)
	d.Outcome, d.DurationMs = outcome, ms
	also := *d
	e := run.Event{Type: run.EventDocumentFinished, Document: &also}
	for _, at := range also.Errors {
		e.Errors = append(e.Errors, s.report.Errors[at])
	}
	s.say(e)
}

// scenes are a run that has everything: words of the width of two, warnings, retries, more changes than fit, a failure.
func scenes() []scene {
	node := report.Document{Index: 5, Kind: "KubernetesNode", Name: "node", Provider: "kubeadm"}
	other := report.Document{Index: 3, Kind: "FooBar", Name: "windows-only"}
	wide := report.Document{Index: 4, Kind: "Motd", Name: "welcome", Provider: "file"}
	base, site, corp := sysctl(), timesync(), join()
	site.Provider = "" // open until it is planned
	s := &script{now: moment(), report: head(report.RunRunning, 0, base, site, corp, other, wide, node)}
	for i := range 20 {
		s.report.Documents = append(s.report.Documents, report.Document{Index: 6 + i, Kind: "FooBar", Name: fmt.Sprintf("more-%d", i)})
	}
	var out []scene
	cut := func(name string, after time.Duration) {
		out = append(out, scene{name, s.events, after})
		s.now, s.events = s.now.Add(after), nil
	}
	copied := s.report
	s.say(run.Event{Type: run.EventRunStarted, Report: &copied})
	cut("the plugins are started", 300*time.Millisecond)
	s.document(0).Warnings = []string{"spec.parameters: net.ipv4.ip_forward is given by a profile and by hand: the hand wins"}
	s.planned(0, "", writeFile, setValue)
	cut("the second document is planned", 2*time.Second)
	s.document(1).Provider = "chronyd"
	s.planned(1, "")
	s.planned(2, "containerd is not installed yet")
	s.planned(4, "", "歡迎訊息", "e\u0301toile")
	s.planned(5, "", "run kubeadm join")
	s.started(0)
	s.doing(0, writeFile)
	cut("the first change", 12*time.Second)
	s.done(0, writeFile, report.Changed, 12034)
	s.doing(0, setValue)
	s.word(run.EventProgress, 0, "loading module 3 of 5: br_netfilter")
	cut("progress", 90*time.Second)
	s.done(0, setValue, report.Changed, 90001)
	s.finished(0, report.Changed, 102040)
	s.started(1)
	s.finished(1, report.Unchanged, 0)
	s.started(2)
	s.word(run.EventRetry, 2, "the domain controller does not answer; trying again in 8s")
	cut("a retry", 4*time.Second)
	for i := range 14 {
		s.doing(2, fmt.Sprintf("create the account of service %d", i))
		s.done(2, fmt.Sprintf("create the account of service %d", i), report.Changed, 3)
	}
	s.doing(2, "join corp.example.com")
	s.word(run.EventWarning, 2, "the clock of the domain controller is 4 minutes ahead")
	cut("many changes", time.Second)
	s.done(2, "join corp.example.com", report.Changed, 61000)
	s.finished(2, report.Changed, 3723000)
	s.finished(3, report.NotApplicable, 0)
	s.started(4)
	s.doing(4, "歡迎訊息歡迎訊息歡迎訊息歡迎訊息歡迎訊息歡迎訊息歡迎訊息歡迎訊息歡迎訊息歡迎訊息歡迎訊息歡迎訊息")
	s.word(run.EventProgress, 4, forged)
	cut("wide letters, and a forger", 10*time.Minute)
	s.done(4, "e\u0301toile", report.Failed, 400)
	s.report = with(s.report, 4, report.Error{Code: "Internal", Message: "no"})
	s.finished(4, report.Failed, 0)
	s.report.Outcome, s.report.ExitCode, s.report.FinishedAt = report.RunFailed, report.ExitFailed, s.now
	s.say(run.Event{Type: run.EventRunFinished, Report: &s.report})
	cut("the end", 0)
	return out
}
