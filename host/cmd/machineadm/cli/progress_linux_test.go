package cli

import (
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

// long begins a run whose document is tried again and again. The function that it returns interrupts it.
func (b *bench) long(script map[string]any) (end func()) {
	b.t.Helper()
	b.noop("")
	b.source(script)
	slow := noopDoc("b", "touch: ["+filepath.Join(b.dir, "b")+"], apply: retry, applyUntil: "+filepath.Join(b.dir, "never"))
	process := b.process("apply", "--phase", "preparation", "--path", b.stream(home()+b.touch("a")+slow+b.touch("c")))
	path := filepath.Join(b.dir, "output")
	out, err := os.Create(path)
	require.NoError(b.t, err)
	b.t.Cleanup(func() {
		if text, err := os.ReadFile(path); err != nil || b.t.Failed() {
			b.t.Logf("%s (%v)", text, err)
		}
	})
	process.Stdout, process.Stderr = out, out
	require.NoError(b.t, process.Start())
	require.NoError(b.t, out.Close())
	return func() {
		b.t.Helper()
		require.NoError(b.t, process.Process.Signal(os.Interrupt))
		_ = process.Wait() // its exit code says the same
		require.Equal(b.t, report.ExitInterrupted, process.ProcessState.ExitCode())
	}
}

// TestReportOfAnUnfinishedRun: a long run says what it does, and its last report is that of its end. One that cannot say it ends as any
// other, and keeps its last report. The runs wait at the same time. The test is not parallel: at its end a run in this process, of another
// test, kills the processes that this one has started.
func TestReportOfAnUnfinishedRun(t *testing.T) {
	b := newBench(t)
	end := b.long(map[string]any{})
	var silent []*bench
	var ends []func()
	for _, answer := range []string{"hang", "crash"} {
		b := newBench(t)
		silent, ends = append(silent, b), append(ends, b.long(b.failing(answer)))
	}

	require.Eventually(t, func() bool { return len(b.arrivals()) > 0 }, 2*time.Minute, 50*time.Millisecond)
	first := b.arrivals()[0]
	assert.Equal(t, report.RunRunning, first.Report.Outcome)
	assert.Contains(t, words.Headline(first.Report, true), "Running: applying Noop/b (document 3 of 4)")
	assert.Nil(t, b.waiting(), "it is not kept")
	end()
	all := b.arrivals()
	last := all[len(all)-1]
	assert.Equal(t, report.RunInterrupted, last.Report.Outcome)
	assert.Greater(t, last.Sequence, first.Sequence)
	b.nowhere(reportCanary)

	for i, b := range silent {
		require.Eventually(t, func() bool { // the call has begun
			calls, err := os.ReadFile(filepath.Join(b.dir, "source.log"))
			return err == nil && strings.Contains(string(calls), "report test://home")
		}, 2*time.Minute, 50*time.Millisecond)
		ends[i]()
		require.NotNil(t, b.waiting())
		b.up()
	}
}
