package terminal

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
)

// hanging is a stream whose third document runs until the run is asked to stop.
func hanging() string {
	return document("first", "touch: [etc/a, etc/b], warn: a warning that is long enough to be longer than eighty cells if it is not folded") +
		document("second", "") +
		document("third", "touch: [歡迎訊息歡迎訊息歡迎訊息歡迎訊息歡迎訊息歡迎訊息歡迎訊息歡迎訊息歡迎訊息歡迎訊息歡迎訊息歡迎訊息, etc/d], apply: hang") +
		document("fourth", "touch: [etc/e]")
}

// TestStatusLine watches a run, interrupts it by key, and reads the remaining text.
func TestStatusLine(t *testing.T) {
	t.Parallel()
	for _, variable := range []string{"NO_COLOR=", "NO_COLOR=0"} {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "{}")
			c := b.apply(hanging())
			c.Env = append(c.Env, variable)
			s := begin(t, c)
			// A slow machine leaves out some seconds.
			s.matches(`2 of 4 documents done(, [0-9hm]*[0-9]+s)?: Noop/third: write .*2 of 4 documents done, [0-9hm]*[0-9]+s: Noop/third: write `)
			s.types("\x03")
			s.ends(report.ExitInterrupted)
			got := regexp.MustCompile(`[0-9.]+m?s\b|under 1ms`).ReplaceAllString(s.text(), "T")
			colors := regexp.MustCompile("\x1b\\[[0-9;]*m")
			assert.Equal(t, variable == "NO_COLOR=", colors.MatchString(got))
			got = colors.ReplaceAllString(got, "")
			for _, want := range []string{
				"Noop/first: warning: a warning that is long", "Noop/first: done: write ", "\nNoop/first: changed (T)\nNoop/second: unchanged (T)\n",
				"stopping after the current change; interrupt again to stop at once\n", "Noop/third: failed",
				"error: Noop/third: the run was interrupted\n  hint:",
				"Interrupted: 4 documents: 1 changed, 1 unchanged, 0 deferred, 1 failed, 1 skipped; took T\n",
			} {
				_, after, found := strings.Cut(got, want)
				require.True(t, found, "%q is missing, or out of order, in\n%s", want, got)
				got = after
			}
		})
	}
}

// TestAskedTwice: the run reports the effect of the first key and of a second one.
func TestAskedTwice(t *testing.T) {
	t.Parallel()
	b := newBench(t, "{}")
	s := begin(t, b.apply(document("first", "touch: [a, b], apply: hangForever")))
	s.shows("0 of 1 document done: Noop/first: write")
	s.types("\x03")
	s.shows("stopping after the current change", "interrupt again to stop at once")
	s.types("\x03")
	s.ends(report.ExitInterrupted)
}

// TestTheLogAndTheStatusLine: every line of the log is complete.
func TestTheLogAndTheStatusLine(t *testing.T) {
	t.Parallel()
	b := newBench(t, `{"say": "before the handshake"}`)
	stream := ""
	for i := range 20 {
		stream += document(fmt.Sprintf("n-%d", i), fmt.Sprintf("touch: [etc/n-%d], say: %s", i, strings.Repeat("words ", 40)))
	}
	s := begin(t, b.apply(stream, "--log-level", "debug"))
	s.ends(report.ExitOK)
	ofPlugin := regexp.MustCompile(`(?m)^time=\S+ level=[A-Z]+ msg="words( words){39}" plugin=machineadm-noop-plugin-test$`)
	assert.Len(t, ofPlugin.FindAllString(s.text(), -1), 2*20, "each is said by Plan and by Apply:\n%s", s.text())
	assert.Contains(t, s.sent(), "of 20 documents done")
}

// TestATerminalThatGoesAway: the run ends in order when the terminal's end is a signal to it, and else continues.
func TestATerminalThatGoesAway(t *testing.T) {
	t.Parallel()
	t.Run("with a signal", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, "{}")
		s := begin(t, b.apply(hanging()))
		s.begins("Noop/third")
		s.goesAway()
		<-s.done
		if got := s.command.ProcessState.ExitCode(); got != report.ExitInterrupted || b.report().Outcome != report.RunInterrupted {
			t.Errorf("exit %d, %s", got, b.report().Outcome)
		}
	})
	t.Run("without", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, "{}")
		c := b.apply(document("first", "") + document("second", "touch: [etc/a], apply: retry, applyUntil: etc/go") +
			document("third", "touch: [etc/b, etc/c], apply: hang"))
		c.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`}, c.Args...)
		var err error
		if c.Path, err = exec.LookPath("sh"); err != nil {
			t.Fatal(err)
		}
		s := begin(t, c)
		s.begins("Noop/second")
		s.goesAway()
		// The second document is applied because of what happens after that.
		require.NoError(t, os.MkdirAll(filepath.Join(b.root, "etc"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(b.root, "etc/go"), nil, 0o600))
		s.until("the run continues without its terminal", func() bool {
			select {
			case <-s.done:
				t.Fatalf("the run has ended with its terminal: exit %d", c.ProcessState.ExitCode())
			default:
			}
			_, err := os.Stat(filepath.Join(b.root, "etc/a"))
			return err == nil
		})
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-s.done
		if got := c.ProcessState.ExitCode(); got != report.ExitInterrupted || b.report().Outcome != report.RunInterrupted {
			t.Errorf("exit %d, %s", got, b.report().Outcome)
		}
	})
}

// goesAway hangs the terminal up.
func (s *session) goesAway() {
	s.t.Helper()
	if err := s.slave.Close(); err != nil {
		s.t.Fatal(err)
	}
	if err := s.master.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// TestKilled: the settings of the terminal are unchanged.
func TestKilled(t *testing.T) {
	t.Parallel()
	b := newBench(t, "{}")
	s := begin(t, b.apply(hanging()))
	s.begins("Noop/third")
	if err := s.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.ends(-1)
}

// TestErrorsWrap: on a terminal, errors break between words. Standard error that is a file is not wrapped.
func TestErrorsWrap(t *testing.T) {
	t.Parallel()
	const columns = 50
	b := newBench(t, "{}")
	for _, c := range []struct {
		command *exec.Cmd
		exit    int
		words   string
	}{
		{b.apply(document("a", "touch: [a], apply: fail")), report.ExitPrecondition, "noop says fail"},
		{newBench(t, "{}").apply("kind: Sysctl\n"), report.ExitUsage, "write one, such as machineadm.cluster.x-k8s.io/v1alpha1"},
		{b.command("apply", "--path", b.dir+"/none.yaml", "--dry-run", "--reboot"), report.ExitUsage, "exclude each other"},
	} {
		s := beginOn(t, c.command, columns)
		s.ends(c.exit)
		_, errors, found := strings.Cut(s.text(), "error: ")
		if !found {
			errors = s.text()
		}
		errors = regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(errors, "")
		assert.Contains(t, strings.Join(strings.Fields(errors), " "), c.words)
		assert.Contains(t, errors, "\n  hint: ")
		for line := range strings.Lines(errors) {
			line = strings.TrimRight(line, "\n")
			if strings.Contains(strings.TrimLeft(line, " "), " ") && strings.HasPrefix(line, " ") {
				assert.LessOrEqual(t, len(line), columns, line)
			}
		}
	}
}

// TestErrorsElsewhere: standard error is a file, and the terminal gets everything else.
func TestErrorsElsewhere(t *testing.T) {
	t.Parallel()
	b := newBench(t, "{}")
	c := b.apply(document("a", "touch: [a], apply: fail"))
	file, err := os.Create(filepath.Join(b.dir, "errors"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() }) // only read from by now
	c.Stderr = file
	s := begin(t, c)
	s.ends(report.ExitPrecondition)
	data, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	if text := s.text(); strings.Contains(text, "noop says fail") || !strings.Contains(string(data), "noop says fail") || strings.Contains(string(data), "\x1b") {
		t.Errorf("the terminal:\n%s\nthe file:\n%s", text, data)
	}
}

// TestLinesWhereNothingCanBeDrawn compares with what a pipe is given, and JSON stays JSON on a terminal.
func TestLinesWhereNothingCanBeDrawn(t *testing.T) {
	t.Parallel()
	durations := regexp.MustCompile(`[0-9.]+m?s\b|under 1ms`)
	stream := document("a", "touch: [a, b], warn: beware") + document("b", "")
	piped, err := newBench(t, "{}").apply(stream).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := durations.ReplaceAllString(string(piped), "T")
	if strings.Contains(want, "\x1b") || !strings.Contains(want, "Noop/a: done: ") {
		t.Errorf("a pipe is given\n%s", piped)
	}
	for _, term := range []string{"TERM=dumb", "TERM="} {
		c := newBench(t, "{}").apply(stream)
		c.Env = append(c.Env, term)
		s := begin(t, c)
		s.ends(report.ExitOK)
		if got := durations.ReplaceAllString(s.text(), "T"); got != want || strings.Contains(s.sent(), "\x1b") {
			t.Errorf("%s: got\n%s\nwant\n%s", term, got, want)
		}
	}
	s := begin(t, newBench(t, "{}").apply(stream, "--output", "json"))
	s.ends(report.ExitOK)
	for line := range strings.Lines(s.text()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("%q is not JSON", line)
		}
	}
	if strings.Contains(s.sent(), "\x1b") {
		t.Error("JSON is decorated")
	}
}

// TestPlanAndStatusAreColored, and have the same text without colors.
func TestPlanAndStatusAreColored(t *testing.T) {
	t.Parallel()
	b := newBench(t, "{}")
	stream := document("a", "touch: [a], content: one")
	colors := regexp.MustCompile("\x1b\\[[0-9;]*m")
	for _, command := range []string{"apply", "plan", "status"} {
		if command == "apply" { // so that there is a status
			if out, err := b.apply(document("x", "apply: fail, touch: [x]")).CombinedOutput(); err == nil {
				t.Fatalf("%s", out)
			}
			continue
		}
		said := map[string]string{}
		for _, variable := range []string{"NO_COLOR=", "NO_COLOR=1", "TERM=dumb"} {
			c := b.on("plan", stream)
			if command == "status" {
				c = b.command("status")
			}
			c.Env = append(c.Env, variable)
			s := begin(t, c)
			s.ends(map[string]int{"plan": report.ExitDiffers, "status": report.ExitOK}[command])
			said[variable] = s.sent()
		}
		if said["NO_COLOR=1"] != said["TERM=dumb"] || strings.Contains(said["NO_COLOR=1"], "\x1b") {
			t.Errorf("%s without colours: %q, %q", command, said["NO_COLOR=1"], said["TERM=dumb"])
		}
		if colors.ReplaceAllString(said["NO_COLOR="], "") != said["NO_COLOR=1"] {
			t.Errorf("%s: %q, without colours %q", command, said["NO_COLOR="], said["NO_COLOR=1"])
		}
		if command == "status" && !strings.HasPrefix(said["NO_COLOR="], "\x1b[1;31mFailed\x1b[0m at ") {
			t.Errorf("%q", said["NO_COLOR="])
		}
	}
}
