package run

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

func TestWhoseDeadlineItWas(t *testing.T) {
	t.Parallel()
	untilEnd := func(ctx context.Context, _ pluginv1.Request) error { <-ctx.Done(); return ctx.Err() }
	tests := map[string]struct {
		setup   func(p *fakePlugin)
		options Options
		exit    int
		says    string
	}{
		"the plugin's own in Plan": {
			setup: func(p *fakePlugin) {
				p.onPlan = func(context.Context, pluginv1.Request) error { return context.DeadlineExceeded }
			},
			exit: report.ExitFailed, says: "Internal: the plugin cancelled the call without a request",
		},
		"cancelled by the plugin itself in Apply": {
			setup: func(p *fakePlugin) { p.apply = applyEnds(pluginv1.Finished{}, context.Canceled) },
			exit:  report.ExitFailed, says: "Internal: the plugin cancelled the call without a request",
		},
		"that of Plan": {
			setup:   func(p *fakePlugin) { p.onPlan = untilEnd },
			options: Options{PlanTimeout: 20 * time.Millisecond},
			exit:    report.ExitDeadline, says: "plugin machineadm-thing-plugin-x did not plan within 20ms",
		},
		"that of Plan, of which the plugin knows a moment earlier": {
			setup: func(p *fakePlugin) {
				p.onPlan = func(context.Context, pluginv1.Request) error { return context.DeadlineExceeded }
			},
			options: Options{PlanTimeout: 50 * time.Millisecond},
			exit:    report.ExitDeadline, says: "did not plan within 50ms",
		},
		"that of the run, while planning": {
			setup:   func(p *fakePlugin) { p.onPlan = untilEnd },
			options: Options{Timeout: 20 * time.Millisecond},
			exit:    report.ExitDeadline, says: "the run took longer than its 20ms",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tt.setup(w.add("x"))
			tt.options.Mode, tt.options.Stream = ModeApply, things(named)
			got := w.execute(tt.options)
			if got.ExitCode != tt.exit || !strings.Contains(errorsOf(got), tt.says) {
				t.Errorf("exit %d, want %d; errors:\n%s\nwant %q", got.ExitCode, tt.exit, errorsOf(got), tt.says)
			}
		})
	}
}

func TestInterruptEndsPlanningAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	interrupt := make(chan struct{})
	w.add("x").onPlan = func(ctx context.Context, _ pluginv1.Request) error {
		close(interrupt)
		<-ctx.Done()
		return ctx.Err()
	}
	got := w.execute(Options{Mode: ModeApply, Stream: things(named, named), Interrupt: interrupt})
	if got.ExitCode != report.ExitInterrupted || got.Outcome != report.RunInterrupted || strings.Contains(w.lines(), "apply") {
		t.Errorf("exit %d %s; errors:\n%s\nlog:\n%s", got.ExitCode, got.Outcome, errorsOf(got), w.lines())
	}
}

func TestSecondInterruptEndsTheGrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, second := context.WithCancel(t.Context())
	defer second()
	first := make(chan struct{})
	p := w.add("x")
	p.apply = func(_ context.Context, _ string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
		if err := send(pluginv1.Started{Change: oneChange().Changes[0]}); err != nil {
			return pluginv1.Finished{}, err
		}
		close(first)
		<-p.stopped
		second()
		<-p.killed // with a grace of an hour, only the second interruption does this
		return pluginv1.Finished{}, pluginv1.ErrCrashed
	}
	got := w.executeIn(ctx, Options{Mode: ModeApply, Stream: things(named), Interrupt: first, Grace: time.Hour})
	if got.ExitCode != report.ExitInterrupted || got.Documents[0].Changes[0].Outcome != report.Interrupted {
		t.Errorf("exit %d, changes %+v; errors:\n%s", got.ExitCode, got.Documents[0].Changes, errorsOf(got))
	}
}

func TestDocumentThatWasNotBegunIsSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	interrupt := make(chan struct{})
	w.add("x").apply = func(_ context.Context, _ string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
		defer close(interrupt)
		return pluginv1.Finished{}, change(send, oneChange().Changes[0])
	}
	got := w.execute(Options{Mode: ModeApply, Stream: things(named, named), Interrupt: interrupt})
	if got.ExitCode != report.ExitInterrupted || outcomes(got) != "Changed Skipped" || len(got.Errors) != 1 {
		t.Errorf("exit %d [%s]; errors:\n%s", got.ExitCode, outcomes(got), errorsOf(got))
	}
}
