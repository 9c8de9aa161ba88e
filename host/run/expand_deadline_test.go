package run

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
)

// drip is a source that sends something now and then, and never ends.
func drip(ctx context.Context, _ string) error {
	for {
		select {
		case <-time.After(20 * time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// many is a stream of references u:0, u:1 ...
func many(n int) string {
	var all strings.Builder
	for i := range n {
		all.WriteString(remote(fmt.Sprint("r", i), fmt.Sprint("u:", i)))
	}
	return all.String()
}

// TestOneDeadlineForAllSources: sources that drip hold the first planning for one limit together, however many documents there are, at
// any depth. The documents that are left wait for their turn, and those before are resolved.
func TestOneDeadlineForAllSources(t *testing.T) {
	t.Parallel()
	nested := map[string]string{"u:0": many(20)[len(remote("r0", "u:0")):], "u:1": thing("a")}
	for name, tt := range map[string]struct {
		stream  string
		objects map[string]string
		drips   string // the URIs that do not: all others drip
		want    string
		pending int
	}{
		"three":                {many(3), nil, "", "", 3},
		"sixty":                {many(60), nil, "", "", 60},
		"behind one that ends": {many(3), map[string]string{"u:0": thing("a")}, "u:0", "Unchanged/resolved Changed", 2},
		"within one that ends": {remote("r0", "u:0"), nested, "u:0 u:1", "Unchanged/resolved Unchanged/resolved Changed", 18},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.add("x")
				s := w.serve("web", tt.objects)
				s.onFetch = func(ctx context.Context, uri string) error {
					if strings.Contains(" "+tt.drips+" ", " "+uri+" ") {
						return nil
					}
					return drip(ctx, uri)
				}
				began := time.Now()
				got := w.execute(Options{Mode: ModePlan, Text: []byte(tt.stream)})
				assert.Equal(t, PlanTimeout, time.Since(began), "the time of the first planning")
				assert.Equal(t, report.ExitDiffers, got.ExitCode, errorsOf(got))
				assert.Equal(t, tt.want, strings.TrimSpace(outcomes(got)))
				assert.Len(t, got.Documents, len(strings.Fields(tt.want))+tt.pending)
				shown := w.execute(Options{Mode: ModePlan, ResolveOnly: true, Text: []byte(tt.stream)})
				assert.Equal(t, report.ExitDeadline, shown.ExitCode)
				assert.Contains(t, errorsOf(shown), "was not delivered within 1m0s, the limit of all sources together")
			})
		})
	}
}

// TestSourcesLeftOverHaveTheirTurn: a document that the first planning did not reach is resolved at its turn, with its own limit, and a
// report target is not affected.
func TestSourcesLeftOverHaveTheirTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.add("x")
		s := w.serve("web", map[string]string{"u:0": thing("a"), "u:1": thing("b")})
		s.onFetch = func(ctx context.Context, uri string) error {
			if uri == "u:0" && s.calls[uri] == 1 {
				return drip(ctx, uri)
			}
			return nil
		}
		stream := many(2) + reference("ReportTarget", "t", "{provider: web, uri: u}")
		got := w.execute(Options{Mode: ModeApply, Text: []byte(stream)})
		require.Equal(t, report.ExitOK, got.ExitCode, errorsOf(got))
		assert.Equal(t, "Unchanged/resolved Changed Unchanged/resolved Changed Unchanged", outcomes(got))
		assert.Equal(t, map[string]int{"u:0": 2, "u:1": 1}, s.calls, "the second was not asked before its turn")
		assert.Empty(t, got.Documents[4].Warnings)
	})
}

// TestOneDeadlineAtATurn: the sources within a document that is resolved at its turn have one limit together, too.
func TestOneDeadlineAtATurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.add("x")
		s := w.serve("web", map[string]string{"u:0": many(20)[len(remote("r0", "u:0")):]})
		var first time.Time
		var tried []string
		s.onFetch = func(ctx context.Context, uri string) error {
			switch {
			case uri != "u:0":
				tried = append(tried, uri)
				return drip(ctx, uri)
			case s.calls[uri] == 1:
				return unreachable()
			}
			first = time.Now()
			return nil
		}
		interrupt := make(chan struct{})
		time.AfterFunc(2*time.Minute, func() { close(interrupt) })
		w.execute(Options{Mode: ModeApply, Text: []byte(remote("r0", "u:0")), Interrupt: interrupt})
		assert.Less(t, time.Since(first), 2*time.Minute+time.Second)
		assert.Equal(t, []string{"u:1", "u:1"}, tried, "the second try is at the turn of the first document within")
	})
}

// TestWaitingIsSaid: a run that waits for a source says every ten seconds why, and until when; an interruption says it, too.
func TestWaitingIsSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		away   time.Duration // how long the source is, from the second try
		waits  int
		exit   int
		errors string
	}{
		"comes":       {25 * time.Second, 3, report.ExitOK, ""},
		"at once":     {0, 0, report.ExitOK, ""},
		"interrupted": {time.Hour, 6, report.ExitInterrupted, "the run was interrupted; the last try: no route to host"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.add("x")
				s := w.serve("web", map[string]string{"u:0": thing("a")})
				until := "no route to host; tries until " + time.Now().Add(15*time.Minute).Format(time.TimeOnly)
				s.onFetch = func(ctx context.Context, uri string) error {
					if s.calls[uri] == 1 {
						return unreachable()
					}
					select {
					case <-time.After(c.away):
						if c.waits > 0 {
							assert.Equal(t, []string{"waiting: " + until}, w.recorded.Documents[0].Warnings, "the report meanwhile")
						}
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				interrupt := make(chan struct{})
				time.AfterFunc(59*time.Second, func() { close(interrupt) })
				got := w.execute(Options{Mode: ModeApply, Text: []byte(remote("r0", "u:0")), Interrupt: interrupt})
				assert.Equal(t, c.exit, got.ExitCode, errorsOf(got))
				assert.Contains(t, errorsOf(got), c.errors)
				assert.Empty(t, got.Documents[0].Warnings)
				assert.Equal(t, c.waits > 0, len(got.Documents[0].Waits) == 1)
				if c.exit == report.ExitOK && c.waits > 0 {
					assert.Equal(t, report.Wait{Reason: "no route to host", StartedAt: got.StartedAt.Round(0), DurationMs: 25000}, got.Documents[0].Waits[0])
				}
				waits := 0
				for _, e := range w.events {
					if e.Type == EventRetry {
						waits++
						assert.Equal(t, until, e.Message)
					}
				}
				assert.Equal(t, c.waits, waits)
			})
		})
	}
}
