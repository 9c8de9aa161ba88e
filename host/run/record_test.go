package run

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// TestConvergedRunWritesTwoReports: at its start and its end, for any number of documents, because each costs several fsyncs.
func TestConvergedRunWritesTwoReports(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x").plan = func(string, int) (pluginv1.Plan, error) { return pluginv1.Plan{}, nil }
	got := w.execute(Options{Mode: ModeApply, Text: things(named, named, named)})
	if got.ExitCode != report.ExitOK || outcomes(got) != "Unchanged Unchanged Unchanged" {
		t.Fatalf("exit %d, outcomes %s", got.ExitCode, outcomes(got))
	}
	if w.reports != 2 {
		t.Errorf("%d reports were written, want 2", w.reports)
	}
}

func TestUnsavedReportOfAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x").apply = func(context.Context, string, func(pluginv1.Event) error) (pluginv1.Finished, error) {
		w.fail = true
		return pluginv1.Finished{Error: pluginv1.AsError(precondition("not ready"))}, nil
	}
	got := w.execute(Options{Mode: ModeApply, Text: things(named)})
	if got.ExitCode != report.ExitPrecondition || !strings.Contains(errorsOf(got), "State: no space left on device") {
		t.Errorf("exit %d; errors:\n%s", got.ExitCode, errorsOf(got))
	}
}

func TestUnsavedSuccessIsAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x").plan = func(string, int) (pluginv1.Plan, error) {
		w.fail = true
		return pluginv1.Plan{}, nil
	}
	got := w.execute(Options{Mode: ModeApply, Text: things(named)})
	if got.ExitCode != report.ExitState || w.sentinel {
		t.Errorf("exit %d, sentinel %v; errors:\n%s", got.ExitCode, w.sentinel, errorsOf(got))
	}
}

// TestUnsavedReportFinishesTheCurrentChange: a full disk does not leave half a change.
func TestUnsavedReportFinishesTheCurrentChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.failAt = 2 // of the first change
	p := w.add("x")
	p.apply = func(ctx context.Context, _ string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
		if err := send(pluginv1.Started{Change: oneChange().Changes[0]}); err != nil {
			return pluginv1.Finished{}, err
		}
		select {
		case <-p.stopped:
		case <-ctx.Done():
			return pluginv1.Finished{}, ctx.Err()
		}
		return pluginv1.Finished{Stopped: true}, send(pluginv1.Changed{ID: "a"})
	}
	got := w.execute(Options{Mode: ModeApply, Text: things(named, named)})
	if got.ExitCode != report.ExitState || outcomes(got) != "Failed Skipped" || !strings.Contains(errorsOf(got), "State: no space left") {
		t.Errorf("exit %d, outcomes %s, errors:\n%s", got.ExitCode, outcomes(got), errorsOf(got))
	}
	if changes := got.Documents[0].Changes; len(changes) != 1 || changes[0].Outcome != report.Changed {
		t.Errorf("changes: %+v", changes)
	}
	if strings.Contains(w.lines(), "kill") || !strings.Contains(w.lines(), "stop x") {
		t.Errorf("log:\n%s", w.lines())
	}
}

// TestUnsavedReportIsTriedAgain: if only one of the two copies of the report can be written, it has the end of the run.
func TestUnsavedReportIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]int{"from the first on": 1, "the last one": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.add("x")
			var saved report.Report
			times := 0
			with := Dependencies{Plugins: w, State: w, Record: func(r report.Report, _ map[string]string) error {
				saved = r
				if times++; times >= fails {
					return errors.New("no space left on device")
				}
				return nil
			}}
			got, _ := Execute(t.Context(), Options{Mode: ModeApply, Stream: decode(t, things(named))}, with, report.Report{})
			if got.ExitCode != report.ExitState || saved.ExitCode != got.ExitCode || saved.Outcome != report.RunFailed || saved.FinishedAt.IsZero() {
				t.Errorf("exit %d; report %d saved: exit %d, %s", got.ExitCode, times, saved.ExitCode, saved.Outcome)
			}
			if strings.Count(errorsOf(saved), "no space left") != 1 {
				t.Errorf("saved:\n%s", errorsOf(saved))
			}
		})
	}
}

// TestUnsavedReportPreventsTheReboot: the run that was saved for the next boot is removed, too.
func TestUnsavedReportPreventsTheReboot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.failAt = 3
	p := w.add("x")
	p.plan = func(string, int) (pluginv1.Plan, error) {
		return pluginv1.Plan{Changes: []pluginv1.Change{{ID: "a", Summary: "do a", Reboot: pluginv1.RebootAfterRun}}}, nil
	}
	p.apply = func(_ context.Context, _ string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
		return pluginv1.Finished{}, change(send, pluginv1.Change{ID: "a", Reboot: pluginv1.RebootAfterRun})
	}
	w.resume = &fakeResume{end: report.ResumeByHand}
	got := w.execute(Options{Mode: ModeApply, Reboot: true, Text: things(named)})
	if len(w.requests) != 1 || !w.requests[0].Asked {
		t.Errorf("requests %+v: the reboot is still due", w.requests)
	}
	if got.ExitCode != report.ExitState || errorsOf(got) != "State: no space left on device" || got.Resume != report.ResumeByHand {
		t.Errorf("exit %d, errors:\n%s\nresume %q", got.ExitCode, errorsOf(got), got.Resume)
	}
	if !strings.HasSuffix(w.lines(), "keep\nend Failed") {
		t.Errorf("log:\n%s", w.lines())
	}
}

// TestReportNamesTheCurrentChange: the report on disk has a change before the change is made, so that it survives a crash.
func TestReportNamesTheCurrentChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var saved report.Report
	w.add("x").apply = func(_ context.Context, _ string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
		if err := send(pluginv1.Started{Change: oneChange().Changes[0]}); err != nil {
			return pluginv1.Finished{}, err
		}
		now := saved.Documents[0].Changes[0].StartedAt
		assert.Equal(t, []report.Change{{ID: "a", Summary: "do a", Outcome: report.Interrupted, StartedAt: now}}, saved.Documents[0].Changes)
		assert.WithinDuration(t, saved.StartedAt, now, time.Minute)
		return pluginv1.Finished{}, send(pluginv1.Changed{ID: "a"})
	}
	deps := Dependencies{Plugins: w, Record: func(r report.Report, _ map[string]string) error {
		saved = r
		return nil
	}}
	got, _ := Execute(t.Context(), Options{Mode: ModeApply, Stream: decode(t, things(named))}, deps, report.Report{StartedAt: time.Now()})
	assert.Equal(t, report.ExitOK, got.ExitCode, errorsOf(got))
}
