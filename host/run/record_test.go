package run

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// TestUnkeptReportFinishesTheChangeInHand: a disk that is full does not make half a change.
func TestUnkeptReportFinishesTheChangeInHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.failAt = 2 // that of the first change
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
	got := w.execute(Options{Mode: ModeApply, Stream: things(named, named)})
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

// TestUnkeptReportIsTriedOnceMore: where the report of the run directory can be written, and the copy of it cannot, it
// says how the run ended.
func TestUnkeptReportIsTriedOnceMore(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]int{"from the first on": 1, "the last one": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.add("x")
			var told report.Report
			times := 0
			with := Dependencies{Plugins: w, State: w, Record: func(r report.Report, _ map[string]string) error {
				told = r
				if times++; times >= fails {
					return errors.New("no space left on device")
				}
				return nil
			}}
			got, _ := Execute(t.Context(), Options{Mode: ModeApply, File: "node.yaml", Stream: things(named)}, with, report.Report{})
			if got.ExitCode != report.ExitState || told.ExitCode != got.ExitCode || told.Outcome != report.RunFailed || told.FinishedAt.IsZero() {
				t.Errorf("exit %d; told at last, time %d: exit %d, %s", got.ExitCode, times, told.ExitCode, told.Outcome)
			}
			if strings.Count(errorsOf(told), "no space left") != 1 {
				t.Errorf("told:\n%s", errorsOf(told))
			}
		})
	}
}

// TestUnkeptReportIsNoReboot: what was kept for the time after it is not left to start at some other boot.
func TestUnkeptReportIsNoReboot(t *testing.T) {
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
	got := w.execute(Options{Mode: ModeApply, Reboot: true, Stream: things(named)})
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
