package timeline

import (
	"fmt"
	"time"

	"github.com/machineadm/machineadm/contract/report"
)

func moment() time.Time { return time.Date(2026, 3, 1, 3, 4, 5, 0, time.UTC) }

// sample builds the report of a run, one part after the other.
type sample struct {
	report.Report
	at int64 // ms since the start
}

func begun(boot string, uptime int64, start time.Time) *sample {
	s := &sample{Report: report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, RunID: "0011223344556677", StreamDigest: "aa", BootID: boot, UptimeMs: uptime,
		StartedAt: start, Outcome: report.RunSucceeded, Phase: "all",
		Host: report.Host{Hostname: "worker-1", Distribution: "debian", Arch: "amd64", Machineadm: "v0.1.0"},
	}}
	return s
}

func (s *sample) stage(name string, ms int64) {
	s.Stages = append(s.Stages, report.Stage{Name: name, DurationMs: ms})
	s.at += ms
}

// document adds a document whose changes take this long, one after the other.
func (s *sample) document(kind, name string, planMs int64, changes ...int64) *report.Document {
	d := report.Document{
		Index: len(s.Documents), ID: fmt.Sprint(len(s.Documents) + 1), Kind: kind, Name: name, Provider: "x", Outcome: report.Unchanged,
		PlanMs: planMs, StartedAt: s.StartedAt.Add(time.Duration(s.at) * time.Millisecond),
	}
	for i, ms := range changes {
		d.Outcome = report.Changed
		d.Changes = append(d.Changes, report.Change{
			ID: fmt.Sprint(i), Summary: fmt.Sprintf("write /etc/%s.d/%d.conf", name, i), Outcome: report.Changed, DurationMs: ms,
			StartedAt: s.StartedAt.Add(time.Duration(s.at) * time.Millisecond),
		})
		s.at += ms
		d.DurationMs += ms
	}
	s.Documents = append(s.Documents, d)
	return &s.Documents[len(s.Documents)-1]
}

// end ends the run after its documents.
func (s *sample) end(outcome report.Outcome) report.Report {
	var apply int64
	for _, d := range s.Documents {
		apply += d.DurationMs
	}
	s.Stages = append(s.Stages, report.Stage{Name: report.StageApply, DurationMs: apply})
	s.stage(report.StageFinish, 12)
	s.Outcome, s.FinishedAt = outcome, s.StartedAt.Add(time.Duration(s.at)*time.Millisecond)
	return s.Report
}

func (s *sample) planned(ms int64) *sample {
	s.stage(report.StagePrepare, 15)
	s.stage(report.StageStart, 130)
	s.stage(report.StagePlan, ms)
	return s
}

func oneDocument() []report.Report {
	s := begun("boot-1", 9400, moment()).planned(40)
	s.document("Sysctl", "base", 35, 12, 61)
	return []report.Report{s.end(report.RunSucceeded)}
}

// tenDocuments are the documents of a worker whose last one waits for the API server and then fails.
func tenDocuments() []report.Report {
	s := begun("boot-1", 14200, moment()).planned(900)
	s.document("Timesync", "site", 80, 210, 1900)
	s.document("Sysctl", "base", 40, 12, 61)
	s.document("Sysctl", "site", 40)
	s.document("ContainerRuntime", "containerd", 310, 15, 2600, 900)
	for i := range 4 {
		s.document("Sysctl", fmt.Sprint("extra-", i), 40, 9)
	}
	s.document("DomainJoin", "corp", 120, 3100, 400)
	d := s.document("KubernetesNode", "worker", 140, 20, 8000)
	d.Waits = []report.Wait{{Reason: "the API server cannot be reached", StartedAt: s.StartedAt.Add(time.Duration(s.at) * time.Millisecond), DurationMs: 12000}}
	s.at += 12000
	d.DurationMs += 12000
	d.Changes = append(d.Changes, report.Change{
		ID: "join", Summary: "join the cluster", Outcome: report.Failed, DurationMs: 5200, StartedAt: s.StartedAt.Add(time.Duration(s.at) * time.Millisecond),
	})
	s.at += 5200
	d.DurationMs += 5200
	d.Outcome, d.Errors = report.Failed, []int{0}
	s.Errors = []report.Error{{
		Code: "Precondition", Document: "KubernetesNode/worker", Message: "kubeadm join failed in the phase preflight: the API server cannot be reached",
		Hint: "check the address, and from this machine: curl -k https://10.0.0.1:6443/healthz",
	}}
	s.ExitCode = report.ExitPrecondition
	return []report.Report{s.end(report.RunFailed)}
}

// baked is a run on an image, whose first document is left in part to the first boot.
func baked() []report.Report {
	s := begun("", 0, moment()).planned(60)
	d := s.document("Sysctl", "base", 30, 12, 800)
	d.Outcome, d.Reason = report.Deferred, report.ReasonLive
	d.Changes = append(d.Changes, report.Change{ID: "live", Summary: "set 3 kernel parameters", Outcome: report.Deferred})
	d = s.document("DomainJoin", "corp", 30)
	d.Outcome, d.Reason = report.Deferred, report.ReasonLive
	r := s.end(report.RunSucceeded)
	r.Host.Hostname, r.Root = "", "/mnt/image"
	return []report.Report{r}
}

func manyDocuments(n int) []report.Report {
	s := begun("boot-1", 11000, moment()).planned(int64(n) * 8)
	for i := range n {
		switch {
		case i%37 == 5:
			s.document("ContainerRuntime", fmt.Sprint("runtime-", i), 8, 15, 2600)
		case i%3 == 0:
			s.document("Sysctl", fmt.Sprint("values-", i), 8)
		default:
			s.document("Sysctl", fmt.Sprint("values-", i), 8, int64(5+i%70))
		}
	}
	return []report.Report{s.end(report.RunSucceeded)}
}

// twoReboots are the three runs of one stream. The first sets the clock.
func twoReboots() []report.Report {
	one := begun("boot-1", 21000, moment().AddDate(-6, 0, 0)).planned(300)
	one.document("Timesync", "site", 60, 300, 2500)
	one.document("Kernel", "modules", 40, 700).Outcome = report.RebootRequired
	first := one.end(report.RunRebootRequired)
	first.FinishedAt = moment()
	two := begun("boot-2", 16000, moment().Add(25*time.Second)).planned(280)
	two.document("Timesync", "site", 60)
	two.document("Kernel", "modules", 40)
	two.document("ContainerRuntime", "containerd", 90, 20, 4100).Outcome = report.RebootRequired
	second := two.end(report.RunRebootRequired)
	three := begun("boot-3", 15500, second.FinishedAt.Add(24*time.Second)).planned(290)
	three.document("Timesync", "site", 60)
	three.document("Kernel", "modules", 40)
	three.document("ContainerRuntime", "containerd", 90)
	three.document("KubernetesNode", "worker", 95, 40, 11500)
	return []report.Report{first, second, three.end(report.RunSucceeded)}
}

// fiftyNodes are one report each, two of them of a machine that has rebooted.
func fiftyNodes() []report.Report {
	var out []report.Report
	for i := range 49 {
		r := tenDocuments()[0]
		if i%7 != 3 {
			s := begun("boot-1", int64(9000+i*130), moment().Add(time.Duration(i*i%17)*900*time.Millisecond)).planned(int64(200 + i*9))
			s.document("Timesync", "site", 60, int64(300+i*40))
			s.document("ContainerRuntime", "containerd", 90, 20, int64(2100+i*61))
			s.document("KubernetesNode", "worker", 95, 40, int64(9500+i*i*2))
			r = s.end(report.RunSucceeded)
		}
		r.Host.Hostname = fmt.Sprintf("worker-%02d", i+1)
		out = append(out, r)
	}
	for _, r := range twoReboots()[1:] {
		r.Host.Hostname = "worker-50"
		out = append(out, r)
	}
	return out
}
