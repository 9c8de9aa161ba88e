package run

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run/values"
)

// TestLongChange: an event says every 30 s that a change without progress still lasts.
func TestLongChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.add("x").apply = func(_ context.Context, _ string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
			for _, c := range []struct {
				id   string
				took time.Duration
			}{{"short", 29 * time.Second}, {"long", 70 * time.Second}} {
				if err := send(pluginv1.Started{Change: pluginv1.Change{ID: c.id, Summary: "do " + c.id}}); err != nil {
					return pluginv1.Finished{}, err
				}
				time.Sleep(c.took)
				if err := send(pluginv1.Changed{ID: c.id}); err != nil {
					return pluginv1.Finished{}, err
				}
			}
			return pluginv1.Finished{}, nil
		}
		start := time.Now()
		w.execute(Options{Mode: ModeApply, Text: []byte(thing("a"))})
		var said []report.Change
		for _, e := range w.events {
			if e.Type == EventChangeRunning {
				said = append(said, *e.Result)
				assert.Equal(t, "long", e.Result.ID)
				assert.Zero(t, e.Time.Sub(start)%values.WaitLook)
			}
		}
		assert.Equal(t, []report.Change{
			{ID: "long", Summary: "do long", DurationMs: 31000}, {ID: "long", Summary: "do long", DurationMs: 61000},
		}, said)
	})
}

// TestTimes: every second of a run is in a stage, in a document, in a change or in a wait.
func TestTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.add("x")
		p.onPlan = func(context.Context, pluginv1.Request) error {
			time.Sleep(2 * time.Second)
			return nil
		}
		tries := 0
		p.apply = func(_ context.Context, name string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
			if name == "b" {
				if tries++; tries <= 2 {
					time.Sleep(time.Second)
					return pluginv1.Finished{Error: &pluginv1.Error{Code: pluginv1.CodeRetry, Message: "not yet"}}, nil
				}
			}
			require.NoError(t, send(pluginv1.Started{Change: oneChange().Changes[0]}))
			time.Sleep(3 * time.Second)
			return pluginv1.Finished{}, send(pluginv1.Changed{ID: "a"})
		}
		s := w.serve("web", map[string]string{"u": thing("a") + thing("b")})
		s.onFetch = func(context.Context, string) error {
			time.Sleep(5 * time.Second)
			return nil
		}
		start := time.Now().UTC()
		got := w.execute(Options{
			Mode: ModeApply, Text: []byte(remote("r", "u")), Retry: RetryPolicy{First: 4 * time.Second, Most: 4 * time.Second, Total: time.Minute},
		})
		require.Equal(t, report.ExitOK, got.ExitCode, errorsOf(got))
		assert.Equal(t, []report.Stage{
			{Name: report.StagePrepare},
			{Name: report.StageResolve, DurationMs: 5000},
			{Name: report.StageStart},
			{Name: report.StagePlan, DurationMs: 4000},
			{Name: report.StageApply, DurationMs: 16000},
			{Name: report.StageFinish},
		}, got.Stages)
		at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
		same := func(seconds int, got time.Time) { assert.Equal(t, at(seconds), got.UTC()) }
		r, a, b := got.Documents[0], got.Documents[1], got.Documents[2]
		same(0, r.StartedAt)
		assert.Equal(t, []int64{5000, 0}, []int64{r.DurationMs, r.PlanMs})
		same(9, a.StartedAt)
		same(9, a.Changes[0].StartedAt)
		assert.Equal(t, []int64{3000, 2000, 3000}, []int64{a.DurationMs, a.PlanMs, a.Changes[0].DurationMs})
		same(12, b.StartedAt)
		assert.Equal(t, []int64{13000, 2000}, []int64{b.DurationMs, b.PlanMs})
		require.Len(t, b.Waits, 1, "the tries in between are a part of the wait")
		same(13, b.Waits[0].StartedAt)
		assert.Equal(t, "not yet", b.Waits[0].Reason)
		assert.Equal(t, int64(9000), b.Waits[0].DurationMs)
		same(22, b.Changes[0].StartedAt)
	})
}
