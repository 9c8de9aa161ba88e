package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting/words"
)

// long begins a run whose document waits for the file "gate". The function that it returns ends it.
func (b *bench) long(script map[string]any) (end func()) {
	b.t.Helper()
	b.noop("")
	b.source(script)
	gate := filepath.Join(b.dir, "gate")
	slow := noopDoc("b", "touch: ["+filepath.Join(b.dir, "b")+"], apply: retry, applyUntil: "+gate)
	// A process of its own: a run in this one adopts the plugins of the others beside it.
	process := b.process("apply", "--phase", "preparation", "--path", b.stream(home()+b.touch("a")+slow+b.touch("c")))
	var out bytes.Buffer
	process.Stdout, process.Stderr = &out, &out
	require.NoError(b.t, process.Start())
	return func() {
		b.t.Helper()
		write(b.t, gate, "")
		require.NoError(b.t, process.Wait(), out.String())
	}
}

// TestReportOfAnUnfinishedRun: a long run says what it does, and its last report is that of its end.
func TestReportOfAnUnfinishedRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	end := b.long(map[string]any{})
	require.Eventually(t, func() bool { return len(b.arrivals()) > 0 }, firstProgress+time.Minute, 50*time.Millisecond)
	first := b.arrivals()[0]
	assert.Equal(t, report.RunRunning, first.Report.Outcome)
	assert.Contains(t, words.Headline(first.Report, true), "Running: applying Noop/b (document 3 of 4)")
	assert.Nil(t, b.waiting(), "it is not kept")
	end()
	all := b.arrivals()
	last := all[len(all)-1]
	assert.Equal(t, report.RunSucceeded, last.Report.Outcome)
	assert.Greater(t, last.Sequence, first.Sequence)
	b.nowhere(reportCanary)
}

// TestUnfinishedRunIsNotHeldUp: a run that cannot say what it does ends as any other, and keeps its last report.
func TestUnfinishedRunIsNotHeldUp(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"hang", "crash"} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			end := b.long(b.failing(answer))
			require.Eventually(t, func() bool { // the call has begun
				calls, err := os.ReadFile(filepath.Join(b.dir, "source.log"))
				return err == nil && strings.Contains(string(calls), "report test://home")
			}, firstProgress+time.Minute, 50*time.Millisecond)
			end()
			require.NotNil(t, b.waiting())
			b.up()
		})
	}
}
