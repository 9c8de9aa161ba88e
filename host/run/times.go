package run

import (
	"time"

	"github.com/machineadm/machineadm/contract/report"
)

// times measures the parts of a run. Its times count from the StartedAt of the report by the monotonic clock, because a run can
// set the other one.
type times struct {
	start  time.Time
	stages []stage
	end    time.Time                // of the run; zero while it lasts
	plans  map[string]time.Duration // by the ID of a document: its plans before its turn
}

type stage struct {
	name  string
	began time.Time
}

// enter ends the current stage and begins another.
func (t *times) enter(name string) {
	t.stages = append(t.stages, stage{name, time.Now()})
}

// at returns a time on the clock of the report, in milliseconds.
func (t *times) at(moment time.Time) time.Time {
	return t.start.Add(moment.Sub(t.start)).Truncate(time.Millisecond)
}

// report returns the stages so far. Each counts whole milliseconds of the run, so that their sum is the run's.
func (t *times) report() []report.Stage {
	end := t.end
	if end.IsZero() {
		end = time.Now()
	}
	out := make([]report.Stage, len(t.stages))
	for i, s := range t.stages {
		until := end
		if i+1 < len(t.stages) {
			until = t.stages[i+1].began
		}
		out[i] = report.Stage{Name: s.name, DurationMs: until.Sub(t.start).Milliseconds() - s.began.Sub(t.start).Milliseconds()}
	}
	return out
}
