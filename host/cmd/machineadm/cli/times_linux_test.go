package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
)

// TestTheTimeOfARunIsInItsReport: the stages are the whole run, and at most a twentieth of it is in no document and in no stage of
// another kind.
func TestTheTimeOfARunIsInItsReport(t *testing.T) {
	for name, c := range map[string]struct {
		stream func(*bench) string
		exit   int
		flags  []string
	}{
		"one document":   {func(*bench) string { return noopDoc("a", "touch: [a]") }, report.ExitOK, nil},
		"many documents": {manyDocs, report.ExitOK, nil},
		"references":     {chained, report.ExitOK, nil},
		"a failure":      {func(b *bench) string { return manyDocs(b) + noopDoc("z", "touch: [z], apply: fail") }, report.ExitPrecondition, nil},
		"a retry":        {func(*bench) string { return noopDoc("a", "touch: [a], apply: retry") }, report.ExitDeadline, []string{"--timeout", "5s"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.noop("{}")
			stream := c.stream(b)
			got := b.apply(stream, append(c.flags, "--allow-secrets")...)
			require.Equal(t, c.exit, got.code, "%s", got)
			r := b.report()
			var all, parts int64
			for _, s := range r.Stages {
				all += s.DurationMs
				if s.Name != report.StagePlan && s.Name != report.StageApply {
					parts += s.DurationMs
				}
			}
			for _, d := range r.Documents {
				parts += d.PlanMs
				if d.Reason != report.ReasonResolved {
					parts += d.DurationMs
				}
			}
			whole := r.FinishedAt.Sub(r.StartedAt).Milliseconds()
			assert.InDelta(t, whole, all, 2, "%+v", r.Stages)
			assert.LessOrEqual(t, parts, all)
			rounded := int64(len(r.Documents))                               // ms: each time is rounded, and what is between two documents is less than that
			assert.GreaterOrEqual(t, parts, all*95/100-10-rounded, "%+v", r) // ms: a short run is shorter than a turn of a busy processor
			t.Logf("%d of %d ms", parts, all)
		})
	}
}

func manyDocs(*bench) string {
	var all strings.Builder
	for i := range 20 {
		all.WriteString(noopDoc(fmt.Sprint("a", i), fmt.Sprintf("touch: [a%d]", i)))
	}
	return all.String()
}
