package cli

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting/words"
	"github.com/machineadm/machineadm/host/state"
)

func TestReportArrives(t *testing.T) {
	b := newBench(t)
	b.noop("")
	b.source(map[string]any{})
	stream := home() + b.touch("a")
	for _, args := range [][]string{{"plan", "--path", b.stream(stream)}, {"validate", "--path", b.stream(stream)}, {"apply", "--root", b.root, "--path", b.stream(stream)}} {
		b.run(args...)
		require.Empty(t, b.arrivals(), "%s sends nothing", args[0])
	}
	before := time.Now().Unix()
	for n := range 2 {
		got := b.live(stream, "--log-level", "debug")
		require.Equal(t, report.ExitOK, got.code, "%s", got)
		assert.NotContains(t, got.String(), reportCanary)
		assert.NotContains(t, got.errOut, "warning: ")
		all := b.arrivals()
		require.Len(t, all, n+1)
		assert.Equal(t, "ReportTarget test://home", all[n].Kind+" "+all[n].URI)
		assert.Equal(t, b.report(), all[n].Report)
		assert.GreaterOrEqual(t, all[n].Sequence, uint64(before)) //nolint:gosec // positive
		if n > 0 {
			assert.Greater(t, all[n].Sequence, all[n-1].Sequence)
		}
		assert.Nil(t, b.waiting())
		b.nowhere(reportCanary)
		process, err := os.ReadFile(filepath.Join(b.dir, "source.process"))
		require.NoError(t, err)
		assert.NotContains(t, string(process), reportCanary, "arguments, environment and standard input of the plugin")
	}
}

// TestReportOfEveryEnd: a run that fails, or that cannot use its stream, reports that too.
func TestReportOfEveryEnd(t *testing.T) {
	b := newBench(t)
	b.noop("")
	b.source(map[string]any{})
	for name, tt := range map[string]struct {
		stream string
		want   int
	}{
		"a document fails":           {home() + noopDoc("a", "touch: [/nonexistent], apply: fail"), report.ExitPrecondition},
		"a document is wrong":        {home() + b.touch("A_"), report.ExitUsage},
		"a document is no YAML":      {"---\n{[\n" + home(), report.ExitUsage},
		"a plugin is missing":        {home() + "---\napiVersion: example.com/v1\nkind: Other\nmetadata: {name: a}\nspec: {provider: test}\n", report.ExitPrecondition},
		"a reboot is needed":         {home() + noopDoc("a", "touch: ["+filepath.Join(b.dir, "boot")+"], reboot: AfterRun"), report.ExitReboot},
		"no document is for it":      {home() + strings.Replace(b.touch("a"), "name: a", "name: a, when: {os: [windows]}", 1), report.ExitPrecondition},
		"a reference does not exist": {home() + ourDoc("RemoteConfig", "a", "uri: test://none"), report.ExitPrecondition},
	} {
		sent := len(b.arrivals())
		got := b.live(tt.stream)
		assert.Equal(t, tt.want, got.code, "%s: %s", name, got)
		all := b.arrivals()
		require.Len(t, all, sent+1, "%s: %s", name, got)
		assert.Equal(t, b.report(), all[sent].Report, name)
		assert.Equal(t, tt.want, all[sent].Report.ExitCode, name)
	}
}

// TestReportWithoutState: the state cannot be kept, and the report says so.
func TestReportWithoutState(t *testing.T) {
	b := newBench(t)
	b.noop("")
	b.source(map[string]any{})
	write(t, b.state, "a file where a directory should be")
	got := b.live(home() + b.touch("a"))
	assert.Equal(t, report.ExitState, got.code, "%s", got)
	all := b.arrivals()
	require.Len(t, all, 1)
	assert.Equal(t, report.ExitState, all[0].Report.ExitCode)
	assert.InDelta(t, time.Now().Unix(), all[0].Sequence, 60)
	assert.NoFileExists(t, filepath.Join(b.dir, "touched/a"))

	b.source(b.failing("retry"))
	got = b.live(home() + b.touch("a"))
	assert.Equal(t, report.ExitState, got.code, "%s", got)
	assert.Contains(t, got.errOut, "warning: the report was not sent, and cannot be kept for another try: ")
}

// TestReportCannotBeKept: a failure there is a warning, and the report is still sent once.
func TestReportCannotBeKept(t *testing.T) {
	b := newBench(t)
	b.noop("")
	b.source(map[string]any{})
	require.Equal(t, report.ExitOK, b.live(b.touch("a")).code)
	require.NoError(t, os.MkdirAll(filepath.Join(b.state, state.OutboxFile, "x"), 0o700))
	got := b.live(home() + b.touch("a"))
	assert.Equal(t, report.ExitOK, got.code, "%s", got)
	assert.Contains(t, got.errOut, "warning: a report that is not sent again cannot be removed: ")
	assert.Len(t, b.arrivals(), 1)
	b.source(b.failing("retry"))
	got = b.live(home() + b.touch("a"))
	assert.Equal(t, report.ExitOK, got.code, "%s", got)
	assert.Contains(t, got.errOut, "cannot be kept for another try")
}

func TestReportWaits(t *testing.T) {
	b := newBench(t)
	b.noop("")
	b.source(b.failing("retry"))
	t.Setenv("HTTPS_PROXY", "http://user:c4n4ry@proxy:3128")
	got := b.live(home()+b.touch("a"), "--log-level", "debug")
	require.Equal(t, report.ExitOK, got.code, "%s", got)
	assert.Contains(t, got.errOut, "warning: the report was not sent: Retry: noop says retry; ")
	assert.NotContains(t, got.String(), reportCanary)
	info, err := os.Lstat(filepath.Join(b.state, state.OutboxFile))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode())
	o := b.waiting()
	assert.Equal(t, 1, o.Tries)
	assert.Equal(t, sourcePlugin, o.Binary)
	assert.Equal(t, []string{b.plugins}, o.PluginDirs)
	assert.NotContains(t, strings.Join(o.Proxies, " "), "c4n4ry")
	assert.InDelta(t, 30*time.Second, o.Pause, float64(6*time.Second))
	assert.Contains(t, b.run("status", "--utc").out, "report waits to be sent since "+o.FirstTry.Format(words.TimeFormat)+"; ")

	send := func(args ...string) result { // by the flags of the unit alone
		return execute(t, nil, append([]string{"report", "send", "--state-dir", b.state, "--run-dir", b.runs}, args...)...)
	}
	got = send()
	assert.Equal(t, report.ExitDeadline, got.code, "%s", got)
	assert.Contains(t, got.out, "the report is tried again in ")
	assert.Equal(t, o, b.waiting(), "not due")
	got = send("--now", "--log-level", "debug")
	assert.Equal(t, report.ExitDeadline, got.code, "%s", got)
	assert.Contains(t, got.errOut, "the report was not sent: Retry: noop says retry")
	assert.NotContains(t, got.String(), reportCanary)
	assert.Equal(t, 2, b.waiting().Tries)
	assert.Equal(t, o.FirstTry, b.waiting().FirstTry)
	assert.Empty(t, b.arrivals())
	b.up()
	for _, want := range []string{"the report is delivered\n", "no report waits in " + b.state + "\n"} {
		got = send("--now")
		assert.Equal(t, result{out: want}, got)
	}
	require.Len(t, b.arrivals(), 1)
	assert.Equal(t, o.Sequence, b.arrivals()[0].Sequence)
	assert.Equal(t, b.report(), b.arrivals()[0].Report)
	assert.NotContains(t, b.run("status").out, "waits")
	b.nowhere(reportCanary)
}

// TestReportIsDue: without --now, the try that is due is made; one after a boot is.
func TestReportIsDue(t *testing.T) {
	b := newBench(t)
	b.noop("")
	b.source(b.failing("precondition"))
	require.Equal(t, report.ExitOK, b.live(home()+b.touch("a")).code)
	o := b.waiting()
	o.LastTry.BootID = "an earlier boot"
	require.NoError(t, state.OutboxIn(b.state).Update(*o))
	b.up()
	assert.Equal(t, result{out: "the report is delivered\n"}, b.run("report", "send"))
}

func TestReportIsGivenUp(t *testing.T) {
	b := newBench(t)
	b.noop("")
	b.source(b.failing("retry"))
	old := func() {
		require.Equal(t, report.ExitOK, b.live(home()+b.touch("a")).code)
		o := b.waiting()
		o.Age = 24 * time.Hour
		require.NoError(t, state.OutboxIn(b.state).Update(*o))
	}
	old()
	got := b.run("report", "send")
	assert.Equal(t, report.ExitDeadline, got.code, "%s", got)
	assert.Contains(t, got.errOut, "was not delivered within 24 hours")
	assert.Nil(t, b.waiting())
	b.nowhere(reportCanary)
	old()
	require.Equal(t, report.ExitOK, b.live(b.touch("a")).code)
	assert.Nil(t, b.waiting(), "a run without a destination drops it")
}

func TestReportIsRefused(t *testing.T) {
	b := newBench(t)
	b.noop("")
	remote := func(more string) string { return ourDoc("RemoteConfig", "r", "uri: test://r"+more) + b.touch("a") }
	objects := map[string]any{"test://r": map[string]any{"body": b.touch("b")}}
	for name, tt := range map[string]struct {
		script map[string]any
		stream string
		warns  string
	}{
		"beside the stream, no capability": {map[string]any{"noReports": true}, remote(""), ""},
		"beside the stream, not supported": {map[string]any{"report": map[string]any{"answer": "unsupported"}}, remote(""), ""},
		"disabled":                         {map[string]any{"report": map[string]any{"answer": "retry"}}, remote(", report: {disabled: true}"), ""},
		"asked for, no capability":         {map[string]any{"noReports": true}, remote(", report: {uri: test://x}"), "warning: the report is not sent: Unsupported"},
		"asked for, not supported":         {map[string]any{"report": map[string]any{"answer": "unsupported"}}, remote(", report: {uri: test://x}"), "warning: the report is not sent: Unsupported"},
		"the document is wrong":            {map[string]any{"report": map[string]any{"answer": "invalid"}}, remote(""), "warning: the report is not sent: InvalidConfig"},
	} {
		tt.script["objects"] = objects
		b.source(tt.script)
		got := b.live(tt.stream)
		assert.Equal(t, report.ExitOK, got.code, "%s: %s", name, got)
		assert.Nil(t, b.waiting(), name)
		if tt.warns == "" {
			assert.NotContains(t, got.errOut, "warning: ", name)
		} else {
			assert.Contains(t, got.errOut, tt.warns, name)
		}
	}
	assert.Empty(t, b.arrivals())

	b.source(map[string]any{"objects": objects, "report": map[string]any{"answer": "retry"}})
	require.Equal(t, report.ExitOK, b.live(remote("")).code)
	b.source(map[string]any{"report": map[string]any{"answer": "invalid"}})
	got := b.run("report", "send", "--now")
	assert.Equal(t, report.ExitUsage, got.code, "%s", got)
	assert.Contains(t, got.errOut, "the report is dropped: InvalidConfig")
	assert.Nil(t, b.waiting())
}

// TestReportBesideTheStream: what a source gives names no destination.
func TestReportBesideTheStream(t *testing.T) {
	b := newBench(t)
	b.noop("")
	b.source(map[string]any{"objects": map[string]any{"test://r": map[string]any{"body": ourDoc("ReportTarget", "evil", "uri: test://evil")}}})
	got := b.live(ourDoc("RemoteConfig", "r", "uri: test://r") + b.touch("a"))
	assert.Equal(t, report.ExitUsage, got.code, "%s", got)
	all := b.arrivals()
	require.Len(t, all, 1)
	assert.Equal(t, "RemoteConfig test://r", all[0].Kind+" "+all[0].URI)
	assert.Contains(t, all[0].Report.Errors[0].Message, "must not say where the report goes")
}

// TestReportDelaysNoRun: a destination that does not answer ends the try.
func TestReportDelaysNoRun(t *testing.T) {
	b := newBench(t)
	b.noop("")
	b.source(b.failing("hang"))
	began := time.Now()
	got := b.live(home() + b.touch("a"))
	assert.Less(t, time.Since(began), 2*time.Minute, "far less than the destination takes; the limit itself is for a quiet machine")
	assert.Equal(t, report.ExitOK, got.code, "%s", got)
	assert.Contains(t, got.errOut, "the destination did not answer in time")
	assert.Equal(t, 1, b.waiting().Tries)
	b.source(b.failing("crash"))
	got = b.live(home() + b.touch("a"))
	assert.Equal(t, report.ExitOK, got.code, "%s", got)
	assert.Equal(t, 1, b.waiting().Tries, "of the newer report")
}

// TestReportOfAnInterruptedRun: the report of a run that SIGTERM ended arrives.
func TestReportOfAnInterruptedRun(t *testing.T) {
	b := newBench(t)
	b.noop("")
	b.source(map[string]any{})
	c := b.process("apply", "--phase", "preparation", "--path", b.stream(home()+noopDoc("slow", "touch: ["+filepath.Join(b.dir, "x")+"], apply: hang")+b.touch("a")))
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	require.NoError(t, c.Start())
	eventually(t, "the change began", func() bool {
		data, err := os.ReadFile(filepath.Join(b.runs, state.ReportFile))
		return err == nil && strings.Contains(string(data), `"changes"`)
	})
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	require.Error(t, c.Wait())
	assert.Equal(t, report.ExitInterrupted, c.ProcessState.ExitCode(), out.String())
	require.Len(t, b.arrivals(), 1)
	assert.Equal(t, report.RunInterrupted, b.arrivals()[0].Report.Outcome)
}

// TestNewerReportSurvivesASend: a send of an older report, also a killed one, neither removes nor replaces a newer one.
func TestNewerReportSurvivesASend(t *testing.T) {
	b := newBench(t)
	b.noop("")
	began := func(n int) func() bool {
		return func() bool {
			data, err := os.ReadFile(filepath.Join(b.dir, "source.log"))
			return err == nil && strings.Count(string(data), "report ") >= n
		}
	}
	b.source(b.failing("retry"))
	require.Equal(t, report.ExitOK, b.live(home()+b.touch("a")).code)
	older := b.waiting()

	slow := b.failing("hang")
	b.source(slow)
	killed := b.process("report", "send", "--now")
	require.NoError(t, killed.Start())
	eventually(t, "the report is on its way", began(2))
	require.NoError(t, killed.Process.Kill())
	require.Error(t, killed.Wait())
	assert.Equal(t, older, b.waiting(), "a killed send changed nothing")

	b.source(map[string]any{"report": map[string]any{"delay": 3000}})
	var both []*exec.Cmd
	for range 2 {
		c := b.process("report", "send", "--now")
		require.NoError(t, c.Start())
		both = append(both, c)
	}
	eventually(t, "the report is on its way twice", began(4))
	b.source(b.failing("retry"))
	run := b.process("apply", "--phase", "preparation", "--path", b.stream(home()+b.touch("a"))) // one in this process ends its children
	require.NoError(t, run.Run())
	newer := b.waiting()
	require.Greater(t, newer.Sequence, older.Sequence)
	for _, c := range both {
		require.NoError(t, c.Wait())
	}
	require.Len(t, b.arrivals(), 2)
	assert.Equal(t, newer, b.waiting())
	b.up()
	assert.Equal(t, report.ExitOK, b.run("report", "send", "--now").code)
	assert.Equal(t, newer.Sequence, b.arrivals()[2].Sequence)
	assert.Nil(t, b.waiting())
}

// TestReportOfAnotherMachine: a clone does not send it.
func TestReportOfAnotherMachine(t *testing.T) {
	b := newBench(t)
	if b.machineID() == "" {
		t.Log("this machine has no ID")
		return
	}
	b.noop("")
	b.source(b.failing("retry"))
	require.Equal(t, report.ExitOK, b.live(home()+b.touch("a")).code)
	b.up()
	write(t, filepath.Join(b.state, "machine-id"), "another\n")
	got := b.run("report", "send", "--now")
	assert.Equal(t, result{out: "no report waits in " + b.state + "\n"}, got)
	assert.Empty(t, b.arrivals())
}

func TestSendWithoutState(t *testing.T) {
	b := newBench(t)
	assert.Equal(t, result{out: "no report waits in " + b.state + "\n"}, b.run("report", "send"))
	assert.NoDirExists(t, b.state)
	write(t, filepath.Join(b.state, state.OutboxFile), `{"version": 1, "document": "`+reportCanary)
	write(t, filepath.Join(b.state, "machine-id"), b.machineID()+"\n")
	got := b.run("report", "send")
	assert.Equal(t, report.ExitState, got.code, "%s", got)
	assert.Contains(t, got.errOut, "is damaged")
	assert.NotContains(t, got.errOut, reportCanary)
}
