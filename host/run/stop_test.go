package run

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// TestOneLimitForAllTries: retries do not extend the limit of a document, and the plugin receives the time left.
func TestOneLimitForAllTries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var left []time.Duration
		p := w.add("x")
		p.onApply = func(r pluginv1.Request) { left = append(left, r.TimeLeft) }
		p.apply = func(context.Context, string, func(pluginv1.Event) error) (pluginv1.Finished, error) {
			return pluginv1.Finished{Error: &pluginv1.Error{Code: pluginv1.CodeRetry, Message: "busy"}}, nil
		}
		doc := "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a, timeout: 60ms}\nspec: {provider: x}\n"
		got := w.execute(Options{Mode: ModeApply, Text: []byte(doc), Retry: RetryPolicy{First: 20 * time.Millisecond, Most: 20 * time.Millisecond, Total: time.Hour}})
		assert.Equal(t, report.ExitDeadline, got.ExitCode)
		assert.Contains(t, errorsOf(got), "applying it took longer than its 60ms; the last try: busy")
		require.Greater(t, len(left), 1)
		for i := range left[1:] {
			assert.Less(t, left[i+1], left[i])
		}
		assert.LessOrEqual(t, left[0], 60*time.Millisecond)

		got = w.execute(Options{
			Mode: ModeApply, Text: things(named), Timeout: 50 * time.Millisecond, Retry: RetryPolicy{First: time.Millisecond, Most: time.Millisecond, Total: time.Hour},
		})
		assert.Equal(t, report.ExitDeadline, got.ExitCode)
		assert.Contains(t, errorsOf(got), "the run took longer than its 50ms; the last try: busy")
	})
}

// TestLimitWhilePlanningAgain: a plan that takes all of a document's time at its turn exceeds the limit of the document, not that
// of the run, and the error has the cause of the plan before.
func TestLimitWhilePlanningAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.add("x")
		first := true
		p.onPlan = func(ctx context.Context, _ pluginv1.Request) error {
			if first {
				first = false
				return &pluginv1.Error{Code: pluginv1.CodeRetry, Message: "no answer"}
			}
			<-ctx.Done()
			return ctx.Err()
		}
		doc := "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a, timeout: 60ms}\nspec: {provider: x}\n"
		got := w.execute(Options{Mode: ModeApply, Text: []byte(doc)})
		assert.Equal(t, report.ExitDeadline, got.ExitCode)
		assert.Contains(t, errorsOf(got), "applying it took longer than its 60ms; the last try: no answer")
	})
}

func TestDeadlines(t *testing.T) {
	t.Parallel()
	untilEnd := func(ctx context.Context, _ pluginv1.Request) error { <-ctx.Done(); return ctx.Err() }
	tests := map[string]struct {
		setup   func(p *fakePlugin)
		options Options
		exit    int
		says    string
	}{
		"a plugin that gives up in Plan": {
			setup: func(p *fakePlugin) {
				p.onPlan = func(context.Context, pluginv1.Request) error { return context.DeadlineExceeded }
			},
			exit: report.ExitFailed, says: "Internal: the plugin cancelled the call without a request",
		},
		"a plugin that gives up in Apply": {
			setup: func(p *fakePlugin) { p.apply = applyEnds(pluginv1.Finished{}, context.Canceled) },
			exit:  report.ExitFailed, says: "Internal: the plugin cancelled the call without a request",
		},
		"the limit of Plan": {
			setup:   func(p *fakePlugin) { p.onPlan = untilEnd },
			options: Options{PlanTimeout: 20 * time.Millisecond},
			exit:    report.ExitDeadline, says: "plugin machineadm-thing-plugin-x did not plan within 20ms",
		},
		"the limit of Plan, which the plugin sees first": {
			setup: func(p *fakePlugin) {
				p.onPlan = func(context.Context, pluginv1.Request) error { return context.DeadlineExceeded }
			},
			options: Options{PlanTimeout: 50 * time.Millisecond},
			exit:    report.ExitDeadline, says: "did not plan within 50ms",
		},
		"the limit of the run in Plan": {
			setup:   func(p *fakePlugin) { p.onPlan = untilEnd },
			options: Options{Timeout: 20 * time.Millisecond},
			exit:    report.ExitDeadline, says: "the run took longer than its 20ms",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				tt.setup(w.add("x"))
				tt.options.Mode, tt.options.Text = ModeApply, things(named)
				got := w.execute(tt.options)
				if got.ExitCode != tt.exit || !strings.Contains(errorsOf(got), tt.says) {
					t.Errorf("exit %d, want %d; errors:\n%s\nwant %q", got.ExitCode, tt.exit, errorsOf(got), tt.says)
				}
			})
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
	got := w.execute(Options{Mode: ModeApply, Text: things(named, named), Interrupt: interrupt})
	if got.ExitCode != report.ExitInterrupted || got.Outcome != report.RunInterrupted || strings.Contains(w.lines(), "apply") {
		t.Errorf("exit %d %s; errors:\n%s\nlog:\n%s", got.ExitCode, got.Outcome, errorsOf(got), w.lines())
	}
}

func TestSecondInterruptEndsTheGrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
		got := w.executeIn(ctx, Options{Mode: ModeApply, Text: things(named), Interrupt: first, Grace: time.Hour})
		if got.ExitCode != report.ExitInterrupted || got.Documents[0].Changes[0].Outcome != report.Interrupted {
			t.Errorf("exit %d, changes %+v; errors:\n%s", got.ExitCode, got.Documents[0].Changes, errorsOf(got))
		}
	})
}

func TestDocumentBeforeItsTurnIsSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	interrupt := make(chan struct{})
	w.add("x").apply = func(_ context.Context, _ string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
		defer close(interrupt)
		return pluginv1.Finished{}, change(send, oneChange().Changes[0])
	}
	got := w.execute(Options{Mode: ModeApply, Text: things(named, named), Interrupt: interrupt})
	if got.ExitCode != report.ExitInterrupted || outcomes(got) != "Changed Skipped" || len(got.Errors) != 1 {
		t.Errorf("exit %d [%s]; errors:\n%s", got.ExitCode, outcomes(got), errorsOf(got))
	}
}

// TestStopIsRepeated: a Stop that arrives before its Apply has no effect.
func TestStopIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		interrupt := make(chan struct{})
		p := w.add("x")
		p.deaf = 1
		p.apply = func(_ context.Context, _ string, _ func(pluginv1.Event) error) (pluginv1.Finished, error) {
			close(interrupt)
			<-p.stopped
			return pluginv1.Finished{Stopped: true}, nil
		}
		got := w.execute(Options{Mode: ModeApply, Text: things(named), Interrupt: interrupt, Grace: 20 * time.Second})
		if got.ExitCode != report.ExitInterrupted || strings.Contains(w.lines(), "kill") {
			t.Errorf("exit %d\n%s", got.ExitCode, w.lines())
		}
	})
}

func TestInterruptFinishesTheCurrentChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	interrupt := make(chan struct{})
	p := w.add("x")
	p.apply = func(_ context.Context, _ string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
		if err := send(pluginv1.Started{Change: pluginv1.Change{ID: "a", Summary: "do a"}}); err != nil {
			return pluginv1.Finished{}, err
		}
		close(interrupt)
		<-p.stopped
		return pluginv1.Finished{Stopped: true}, send(pluginv1.Changed{ID: "a"})
	}
	got := w.execute(Options{Mode: ModeApply, Text: things(named, named), Interrupt: interrupt})
	if got.ExitCode != report.ExitInterrupted || got.Outcome != report.RunInterrupted || outcomes(got) != "Failed Skipped" {
		t.Errorf("exit %d %s [%s]", got.ExitCode, got.Outcome, outcomes(got))
	}
	if c := got.Documents[0].Changes; len(c) != 1 || c[0].Outcome != report.Changed {
		t.Errorf("the current change is %+v, want it Changed", c)
	}
	if strings.Contains(w.lines(), "kill") {
		t.Errorf("a plugin that stops in time must not be killed:\n%s", w.lines())
	}
}

func TestPluginThatIgnoresStopIsKilled(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"after an interruption": {Interrupt: closed()},
		"after the deadline of the document": {
			Text: []byte("apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a, timeout: 20ms}\nspec: {provider: x}\n"),
		},
		"after the deadline of the run": {Timeout: 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				interrupt := make(chan struct{})
				p := w.add("x")
				p.apply = func(ctx context.Context, _ string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
					if err := send(pluginv1.Started{Change: pluginv1.Change{ID: "a", Summary: "do a"}}); err != nil {
						return pluginv1.Finished{}, err
					}
					if o.Interrupt != nil {
						close(interrupt)
					}
					<-p.killed
					return pluginv1.Finished{}, ctx.Err()
				}
				want := report.ExitDeadline
				if o.Interrupt != nil {
					o.Interrupt, want = interrupt, report.ExitInterrupted
				}
				if o.Text == nil {
					o.Text = things(named)
				}
				o.Mode, o.Grace = ModeApply, 30*time.Millisecond
				got := w.execute(o)
				if got.ExitCode != want {
					t.Errorf("exit %d, want %d; errors:\n%s", got.ExitCode, want, errorsOf(got))
				}
				log := w.lines()
				if stop, kill := strings.Index(log, "stop x"), strings.Index(log, "kill x"); stop < 0 || kill < stop {
					t.Errorf("want stop, then kill:\n%s", log)
				}
			})
		})
	}
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
