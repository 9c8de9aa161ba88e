package values

import (
	"time"

	"github.com/machineadm/machineadm/contract/report"
)

// Times measures the parts of a run. Its times count from the StartedAt of the report by the monotonic clock, because a run can
// set the other one.
type Times struct {
	start  time.Time
	stages []stage
	End    time.Time                // of the run; zero while it lasts
	Plans  map[string]time.Duration // by the ID of a document: its plans before its turn
}

// NewTimes returns the times of a run that began at this time.
func NewTimes(start time.Time) Times {
	return Times{start: start, stages: []stage{{report.StagePrepare, start}}, Plans: map[string]time.Duration{}}
}

type stage struct {
	name  string
	began time.Time
}

// Enter ends the current stage and begins another.
func (t *Times) Enter(name string) {
	t.stages = append(t.stages, stage{name, time.Now()})
}

// At returns a time on the clock of the report, in milliseconds.
func (t *Times) At(moment time.Time) time.Time {
	return t.start.Add(moment.Sub(t.start)).Truncate(time.Millisecond)
}

// report returns the stages so far. Each counts whole milliseconds of the run, so that their sum is the run's.
func (t *Times) report() []report.Stage {
	end := t.End
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
