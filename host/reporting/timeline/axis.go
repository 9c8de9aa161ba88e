package timeline

import (
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting/words"
)

// axis is the time from the first boot, or the first run, to the last end.
type axis struct {
	begin  time.Time
	length time.Duration
	now    time.Time
}

func axisOf(runs []report.Report, now time.Time) axis {
	var from, to time.Time
	for i := range runs {
		r := &runs[i]
		start := begin(r)
		booted := start.Add(-uptime(r, false))
		if from.IsZero() || booted.Before(from) {
			from = booted
		}
		if end := start.Add(took(r)); to.Before(end) {
			to = end
		}
	}
	if to.Before(now) {
		to = now
	}
	return axis{begin: from, length: min(longest, max(time.Millisecond, to.Sub(from))), now: now}
}

// firstBoot is the longest time from a boot to the first run of a stream in which the run counts as a part of the boot.
const firstBoot = 10 * time.Minute

// uptime returns the time from the boot to a run; 0 if it is unknown, or if the machine has run for long before.
func uptime(r *report.Report, again bool) time.Duration {
	if up := ms(r.UptimeMs); again || up <= firstBoot {
		return up
	}
	return 0
}

// begin returns the start of a run on the clock as the run left it: a run can set the clock, and the next one begins with it.
func begin(r *report.Report) time.Time {
	if r.FinishedAt.IsZero() || len(r.Stages) == 0 {
		return r.StartedAt
	}
	return r.FinishedAt.Add(-took(r))
}

func took(r *report.Report) time.Duration {
	total := time.Duration(0)
	for _, s := range r.Stages {
		total = min(longest, total+ms(s.DurationMs))
	}
	if len(r.Stages) == 0 {
		return min(longest, words.Took(r))
	}
	return total
}

// ms returns a number of a report as a duration that can be calculated with.
func ms(n int64) time.Duration {
	return time.Duration(max(0, min(n, longest.Milliseconds()))) * time.Millisecond
}

// bar returns a bar within the axis.
func (a axis) bar(kind Kind, text string, start time.Time, length time.Duration) Bar {
	from := min(a.length, max(-longest, start.Sub(a.begin)))
	return Bar{Kind: kind, Text: text, Start: max(0, from), End: min(a.length, max(0, from+max(0, length)))}
}

// machine returns the bars of the machine for a run: the reboot and the boot before it, and its stages.
func (a axis) machine(runs []report.Report, i int) []Bar {
	r := &runs[i]
	start := begin(r)
	again := i > 0 && r.BootID != runs[i-1].BootID
	sinceBoot := uptime(r, again)
	var out []Bar
	if again {
		ended := begin(&runs[i-1]).Add(took(&runs[i-1]))
		sinceBoot = min(sinceBoot, max(0, start.Sub(ended))) // the uptime of a container is that of its host
		out = append(out, a.bar(Reboot, "", ended, max(0, start.Add(-sinceBoot).Sub(ended))))
	}
	if sinceBoot > 0 && (i == 0 || again) {
		out = append(out, a.bar(Boot, "", start.Add(-sinceBoot), sinceBoot))
	}
	kinds := map[string]Kind{
		report.StagePrepare: Prepare, report.StageResolve: Resolve, report.StageStart: Start, report.StagePlan: Plan, report.StageApply: Apply,
		report.StageFinish: Finish,
	}
	at := start
	for _, s := range r.Stages {
		if kind, known := kinds[s.Name]; known {
			out = append(out, a.bar(kind, "", at, ms(s.DurationMs)))
		}
		at = at.Add(ms(s.DurationMs))
	}
	if len(r.Stages) == 0 && took(r) > 0 {
		out = append(out, a.bar(Apply, "a report without stages", start, took(r)))
	}
	return out
}

// of returns a time of a report on the axis.
func (a axis) of(r *report.Report, moment time.Time) time.Time {
	return begin(r).Add(min(longest, max(0, moment.Sub(r.StartedAt))))
}

// end returns when what is not over at the end of a report ended, as far as known.
func (a axis) end(runs []report.Report, i int) time.Time {
	if i == len(runs)-1 && !a.now.IsZero() {
		return a.now
	}
	return begin(&runs[i]).Add(took(&runs[i]))
}

// unfinished is the kind of what is not over at the end of a report.
func (a axis) unfinished(runs []report.Report, i int) Kind {
	if i == len(runs)-1 && !a.now.IsZero() {
		return Running
	}
	return Cut
}
