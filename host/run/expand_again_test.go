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

// TestExpandInAnyOrder: the stream digest does not depend on when a document is resolved.
func TestExpandInAnyOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x").apply = func(context.Context, string, func(pluginv1.Event) error) (pluginv1.Finished, error) {
		return pluginv1.Finished{Error: &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: "no"}}, nil
	}
	s := w.serve("web", map[string]string{"u:1": thing("b"), "u:2": thing("c")})
	s.answer = func(uri string, _ int) error {
		if uri == "u:1" && s.calls["u:2"] == 0 {
			return unreachable()
		}
		return nil
	}
	options := Options{Mode: ModeApply, Text: []byte(remote("r", "u:1") + remote("s", "u:2"))}
	late := w.execute(options)
	require.Equal(t, 2, s.calls["u:1"], "it is resolved at its turn")
	again := w.execute(options)
	require.Equal(t, 3, s.calls["u:1"], "it is resolved first")
	assert.Equal(t, late.StreamDigest, again.StreamDigest)
	s.objects["u:1"], s.objects["u:2"] = s.objects["u:2"], s.objects["u:1"]
	assert.NotEqual(t, late.StreamDigest, w.execute(options).StreamDigest)
}

// TestRebootsWithALateSource: a stream causes no more reboots when the stream of a reference is known late, or changes.
func TestRebootsWithALateSource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x").apply = reboots(pluginv1.RebootBeforeNext)
	s := w.serve("web", map[string]string{"u:1": thing("b")})
	s.answer = func(string, int) error { return unreachable() }
	options := Options{Mode: ModeApply, Reboot: true, Text: []byte(thing("a") + remote("r", "u:1") + thing("z"))}
	first := w.execute(options)
	require.Equal(t, report.ExitReboot, first.ExitCode, errorsOf(first))
	s.answer, options.Resumed = nil, true
	for boot := 2; boot <= MaxReboots+1; boot++ {
		w.requests = nil // as the state store does when the boot ID has changed
		got := w.execute(options)
		assert.Equal(t, boot, w.reboots)
		assert.NotEqual(t, first.StreamDigest, got.StreamDigest)
		want := report.ExitReboot
		if boot > MaxReboots {
			want = report.ExitDeadline
		}
		assert.Equal(t, want, got.ExitCode, errorsOf(got))
	}
}

// TestLimitWhileResolvingAtItsTurn: whatever takes all of a document's time at its turn exceeds the limit of the document, not that of
// the run, nor the error of a document of its stream.
func TestLimitWhileResolvingAtItsTurn(t *testing.T) {
	t.Parallel()
	untilEnd := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, object := range map[string]string{"a plan": thing("b"), "a source": remote("s", "u:2")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.add("x").onPlan = func(ctx context.Context, _ pluginv1.Request) error { return untilEnd(ctx) }
				s := w.serve("web", map[string]string{"u:1": object})
				s.onFetch = func(ctx context.Context, uri string) error {
					switch {
					case uri == "u:2":
						return untilEnd(ctx)
					case s.calls[uri] == 1: // as a plugin that sees the deadline first
						return context.DeadlineExceeded
					}
					return nil
				}
				stream := strings.Replace(remote("r", "u:1"), "{name: r}", "{name: r, timeout: 500ms}", 1)
				got := w.execute(Options{Mode: ModeApply, Text: []byte(stream), PlanTimeout: 900 * time.Millisecond})
				assert.Equal(t, report.ExitDeadline, got.ExitCode)
				assert.Contains(t, errorsOf(got), "Deadline: applying it took longer than its 500ms")
				assert.Equal(t, "RemoteConfig/r", got.Errors[0].Document)
			})
		})
	}
}

// TestReportTargetNeverFailsARun: a report that cannot be sent is a warning, but an error of the document is one, and so is a provider
// that a validation does not find.
func TestReportTargetNeverFailsARun(t *testing.T) {
	t.Parallel()
	stream := func(spec string) []byte { return []byte(reference("ReportTarget", "t", spec) + thing("a")) }
	for name, tt := range map[string]struct {
		spec, warning string
		answer        error
	}{
		"no plugin":     {"{provider: wep, uri: u}", "the report cannot be sent: spec.provider: plugin machineadm-remote-configuration-provider-wep: not installed", nil},
		"unsupported":   {"{provider: web, uri: u}", "the report cannot be sent: web does not", &pluginv1.Error{Code: pluginv1.CodeUnsupported, Message: "web does not"}},
		"not yet":       {"{provider: web, uri: u}", "the report cannot be sent: no route to host", unreachable()},
		"a late plugin": {"{provider: web, uri: u}", "the report cannot be sent: it was not delivered within 50ms", context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.add("x")
				w.serve("web", nil).onReport = tt.answer
				got := w.execute(Options{Mode: ModeApply, Text: stream(tt.spec), PlanTimeout: 50 * time.Millisecond})
				require.Equal(t, report.ExitOK, got.ExitCode, errorsOf(got))
				assert.Equal(t, "Unchanged Changed", outcomes(got))
				require.Len(t, got.Documents[0].Warnings, 1)
				assert.Contains(t, got.Documents[0].Warnings[0], tt.warning)
			})
		})
	}
	w := newWorld(t)
	w.add("x")
	w.serve("web", nil).onReport = invalid("spec.uri")
	assert.Equal(t, report.ExitUsage, w.execute(Options{Mode: ModeApply, Text: stream("{provider: web, uri: u}")}).ExitCode)
	assert.Equal(t, report.ExitPrecondition, w.execute(Options{Mode: ModeValidate, Text: stream("{provider: wep, uri: u}")}).ExitCode)
}

// TestExpandForgetsFormerDocuments: what a corrected document stood for is not kept until a run succeeds, but all of what a document
// that cannot be resolved yet may bring.
func TestExpandForgetsFormerDocuments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x").apply = func(context.Context, string, func(pluginv1.Event) error) (pluginv1.Finished, error) {
		return pluginv1.Finished{Error: &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: "no"}}, nil
	}
	s := w.serve("web", map[string]string{"u:1": thing("a") + remote("s", "u:2"), "u:2": thing("b"), "u:3": thing("c")})
	fails := func(mode Mode, stream string) {
		got := w.execute(Options{Mode: mode, Text: []byte(stream)})
		require.NotEqual(t, report.ExitOK, got.ExitCode)
	}
	fails(ModeApply, remote("r", "u:1"))
	require.Len(t, w.resolved, 2)
	s.answer = func(uri string, _ int) error {
		if uri == "u:1" {
			return unreachable()
		}
		return nil
	}
	fails(ModeApply, thing("z")+remote("r", "u:1"))
	fails(ModeApply, remote("r", "u:3")+"---\n{\n")
	fails(ModePlan, remote("r", "u:3"))
	require.GreaterOrEqual(t, len(w.resolved), 2)
	fails(ModeApply, remote("r", "u:3"))
	require.Len(t, w.resolved, 1)
	for _, data := range w.resolved {
		assert.Equal(t, thing("c"), string(data))
	}
}
