package terminal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/contract/report"
)

// hanging is a stream whose third document goes on until the run is asked to stop.
func hanging() string {
	return document("first", "touch: [etc/a, etc/b], warn: a warning that is long enough to be longer than eighty cells if it is not folded") +
		document("second", "") +
		document("third", "touch: [歡迎訊息歡迎訊息歡迎訊息歡迎訊息歡迎訊息歡迎訊息歡迎訊息歡迎訊息歡迎訊息歡迎訊息歡迎訊息歡迎訊息, etc/d], apply: hang") +
		document("fourth", "touch: [etc/e]")
}

// TestTheListOnATerminal watches a run, ends it with the key that people use, and reads what is left.
func TestTheListOnATerminal(t *testing.T) {
	t.Parallel()
	for _, width := range []int{20, 80, 200} {
		for _, variable := range []string{"NO_COLOR=", "NO_COLOR=0"} {
			t.Run(fmt.Sprintf("%d columns, %s", width, variable), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, "{}")
				c := b.apply(hanging())
				c.Env = append(c.Env, variable)
				s := begin(t, c, width, 24)
				if width >= 80 {
					s.shows("at work             1s  Noop/third (test)")
					s.shows("at work             2s  Noop/third (test)", "\nwaiting                 Noop/fourth (test): 1 change", "2 of 4 documents done")
				} else {
					s.shows("at work Noop/third…", "\nwaiting Noop/fourt…", "\n2/4 done, 2s")
				}
				s.mu.Lock()
				if wrapped := s.view.wrapped(); len(wrapped) > 0 {
					t.Errorf("these lines wrap: %q", wrapped)
				}
				s.mu.Unlock()
				s.types("\x03")
				s.ends(report.ExitInterrupted)
				s.left(width)
				s.mu.Lock()
				defer s.mu.Unlock()
				if (s.view.colors > 0) != (variable == "NO_COLOR=") {
					t.Errorf("%d times a colour with %s", s.view.colors, variable)
				}
			})
		}
	}
}

// left compares what stays of hanging with what should.
func (s *session) left(width int) {
	s.t.Helper()
	got := strings.Join(s.finished(), "\n")
	got = regexp.MustCompile(`<?[0-9.]+m?s\b`).ReplaceAllStringFunc(got, func(d string) string { return strings.Repeat("t", len(d)) })
	got = regexp.MustCompile(` +t+\b`).ReplaceAllString(got, " t")
	want := map[int][]string{
		20: {"warning Noop/first:", "changed Noop/first…", "  done write", "unchanged Noop/sec…", "failed Noop/third …", "Interrupted: 4"},
		80: {
			"warning                 Noop/first: a warning that is long enough to be longer\n                        than eighty cells if it is not folded",
			"changed t  Noop/first (test)", "unchanged t  Noop/second (test)", "failed t  Noop/third (test)", "error: Noop/third: the run was interrupted\n  hint:",
			"Interrupted: 4 documents: 1 changed, 1 unchanged, 0 deferred, 1 failed, 1",
		},
		200: {
			"warning                 Noop/first: a warning that is long enough to be longer than eighty cells if it is not folded\nchanged t  Noop/first (test)\n  done t    ",
			"Interrupted: 4 documents: 1 changed, 1 unchanged, 0 deferred, 1 failed, 1 skipped; took t\nreport: ",
		},
	}[width]
	at := 0
	for _, w := range want {
		next := strings.Index(got[at:], w)
		if next < 0 {
			s.t.Errorf("%q is missing, or out of order, in\n%s", w, got)
			continue
		}
		at += next
	}
	for _, live := range []string{"at work", "waiting", "planning", "doing", "stopping", "done,", "^C"} {
		if strings.Contains(got, live) {
			s.t.Errorf("%q stays of the live region:\n%s", live, got)
		}
	}
}

// TestAskedTwice: the list says what the first key does, and that there is a second.
func TestAskedTwice(t *testing.T) {
	t.Parallel()
	b := newBench(t, "{}")
	s := begin(t, b.apply(document("first", "touch: [a, b], apply: hangForever")), 80, 24)
	s.shows("doing ")
	s.types("\x03")
	s.shows("stopping when the change in hand is done", "interrupt again to stop at once")
	s.types("\x03")
	s.ends(report.ExitInterrupted)
}

// TestALongStream: the live region is bounded, and every document stays in the history, once and in order.
func TestALongStream(t *testing.T) {
	t.Parallel()
	const n = 100
	b := newBench(t, "{}")
	s := begin(t, b.apply(documents(n)), 80, 20)
	s.ends(report.ExitOK)
	next := 0
	for _, line := range s.finished() {
		if !strings.HasPrefix(line, "changed ") {
			continue
		}
		if !strings.HasSuffix(line, fmt.Sprintf("  Noop/n-%d (test)", next)) {
			t.Fatalf("%q where document %d should be", line, next)
		}
		next++
	}
	if next != n {
		t.Errorf("%d documents of %d are there", next, n)
	}
	if text := s.text(); strings.Contains(text, "waiting") || strings.Contains(text, "at work") {
		t.Errorf("something stays of the live region:\n%s", text)
	}
	if !strings.Contains(s.sent(), "more documents") {
		t.Error("nothing was ever drawn")
	}
}

// TestTheLogDoesNotTearTheList: every line of the log is whole, and so is the list.
func TestTheLogDoesNotTearTheList(t *testing.T) {
	t.Parallel()
	b := newBench(t, `{"say": "before the handshake"}`)
	stream := ""
	for i := range 20 {
		stream += document(fmt.Sprintf("n-%d", i), fmt.Sprintf("touch: [etc/n-%d], say: %s", i, strings.Repeat("words ", 40)))
	}
	s := begin(t, b.apply(stream+document("last", "touch: [a, b], apply: hang"), "--log-level", "debug"), 80, 24)
	s.shows("Noop/last (test)", "20 of 21 documents done", "words")
	const text = `("([^"\\]|\\.)*"|[^ "=]+)`
	whole := regexp.MustCompile(`^(time=\S+ level=[A-Z]+ msg=` + text + `( [A-Za-z]+=` + text + `)*$|changed |  done |at work |  doing |20 of 21 )`)
	ofPlugin := regexp.MustCompile(` msg="words( words){39}" plugin=machineadm-noop-plugin-test$`)
	s.until("every line is whole", func() bool { // it may be drawing
		log := 0
		for line := range strings.SplitSeq(s.text(), "\n") {
			said := ofPlugin.MatchString(line)
			if !whole.MatchString(line) || strings.Count(line, "time=") > 1 || strings.Contains(line, "words") != said {
				return false
			}
			if said {
				log++
			}
		}
		return log >= 20
	})
	s.types("\x03")
	s.ends(report.ExitInterrupted)
}

// TestResizing: a terminal that becomes narrower folds what stands there, and the list is still drawn in its place.
func TestResizing(t *testing.T) {
	t.Parallel()
	b := newBench(t, "{}")
	s := begin(t, b.apply(hanging()), 120, 24)
	s.shows("at work             1s  Noop/third (test)", "waiting                 Noop/fourth (test): 1 change")
	for _, width := range []int{50, 100, 21, 70, 69, 30, 200} {
		s.resize(width, 24)
		at := len(s.sent())
		s.until("it is drawn again, twice", func() bool { return strings.Count(s.sent()[at:], "A") >= 2 })
		s.until(fmt.Sprintf("at %d columns everything is there once", width), func() bool { // it may be drawing
			text := s.text()
			return strings.Count(text, "at work") == 1 && strings.Count(text, "waiting") == 1
		})
	}
	s.types("\x03")
	s.ends(report.ExitInterrupted)
	if text := s.text(); strings.Contains(text, "at work") || strings.Contains(text, "waiting") {
		t.Errorf("something stays of the live region:\n%s", text)
	}
}

// TestATerminalThatIsStopped: somebody has pressed Ctrl-S and gone for the night.
func TestATerminalThatIsStopped(t *testing.T) {
	t.Parallel()
	b := newBench(t, "{}")
	s := begin(t, b.apply(document("first", "touch: [a, b], apply: hang")+documents(20)), 80, 24)
	s.shows("at work", "Noop/first")
	control(t, s.slave, func(fd int) error { return unix.IoctlSetInt(fd, unix.TCXONC, unix.TCOOFF) }) // what that key does
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.until("the run has ended", func() bool { return b.report().Outcome == report.RunInterrupted })
	select {
	case <-s.done:
	case <-time.After(time.Minute):
		t.Fatal("the process waits for the terminal")
	}
	if got := s.command.ProcessState.ExitCode(); got != report.ExitInterrupted || strings.Contains(s.text(), "Interrupted") {
		t.Errorf("exit %d; the terminal shows\n%s", got, s.text())
	}
}

// TestATerminalThatGoesAway: the run ends in order when the terminal's end is a signal to it, and else goes on.
func TestATerminalThatGoesAway(t *testing.T) {
	t.Parallel()
	t.Run("with a signal", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, "{}")
		s := begin(t, b.apply(hanging()), 80, 24)
		s.shows("at work", "Noop/third")
		s.goesAway()
		<-s.done
		if got := s.command.ProcessState.ExitCode(); got != report.ExitInterrupted || b.report().Outcome != report.RunInterrupted {
			t.Errorf("exit %d, %s", got, b.report().Outcome)
		}
	})
	t.Run("without", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, "{}")
		c := b.apply(hanging())
		c.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`}, c.Args...)
		var err error
		if c.Path, err = exec.LookPath("sh"); err != nil {
			t.Fatal(err)
		}
		s := begin(t, c, 80, 24)
		s.shows("at work", "Noop/third")
		s.goesAway()
		select {
		case <-s.done:
			t.Fatalf("the run has ended with its terminal: exit %d", c.ProcessState.ExitCode())
		case <-time.After(2 * time.Second): // that it goes on has no event
		}
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

// TestStoppedAndContinued: what the shell has written in between stays.
func TestStoppedAndContinued(t *testing.T) {
	t.Parallel()
	b := newBench(t, "{}")
	s := begin(t, b.apply(hanging()), 80, 24)
	s.shows("at work             1s  Noop/third (test)")
	for _, sent := range []os.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if sent == syscall.SIGCONT {
			s.until("it is stopped", func() bool {
				stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.command.Process.Pid))
				return err == nil && strings.Contains(string(stat), ") T ")
			})
			if _, err := s.slave.WriteString("[1]+  Stopped\n# fg\n"); err != nil {
				t.Fatal(err)
			}
			s.shows("# fg")
		}
		if err := s.command.Process.Signal(sent); err != nil {
			t.Fatal(err)
		}
	}
	s.until("the list is drawn below", func() bool {
		_, after, _ := strings.Cut(s.text(), "# fg\n")
		return strings.Contains(after, "at work") && strings.Contains(after, "2 of 4 documents done")
	})
	s.types("\x03")
	s.ends(report.ExitInterrupted)
	if text := s.text(); !strings.Contains(text, "[1]+  Stopped\n# fg\n") {
		t.Errorf("what the shell wrote is gone:\n%s", text)
	}
}

// TestKilled: nothing was done to the terminal that somebody would have to undo.
func TestKilled(t *testing.T) {
	t.Parallel()
	b := newBench(t, "{}")
	s := begin(t, b.apply(hanging()), 80, 24)
	s.shows("at work", "Noop/third")
	if err := s.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.ends(-1)
}

// TestErrorsElsewhere: standard error is a file, and the terminal is the list's alone.
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
	s := begin(t, c, 80, 24)
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
		s := begin(t, c, 80, 24)
		s.ends(report.ExitOK)
		if got := durations.ReplaceAllString(strings.Join(s.finished(), "\n")+"\n", "T"); got != want || strings.Contains(s.sent(), "\x1b") {
			t.Errorf("%s: got\n%s\nwant\n%s", term, got, want)
		}
	}
	s := begin(t, newBench(t, "{}").apply(stream, "--output", "json"), 80, 24)
	s.ends(report.ExitOK)
	for _, line := range s.finished() {
		if !json.Valid([]byte(line)) {
			t.Errorf("%q is not JSON", line)
		}
	}
	if strings.Contains(s.sent(), "\x1b") {
		t.Error("JSON is decorated")
	}
}

// TestPlanAndStatusAreColored, and say the same without.
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
			s := begin(t, c, 200, 24)
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

// TestATerminalOfSomebodyElse: one that cannot be opened again, as after su, is drawn on as it is.
func TestATerminalOfSomebodyElse(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	const nobody = 65534
	b := newBench(t, "{}")
	c := b.apply(hanging())
	data, err := os.ReadFile(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	c.Path = filepath.Join(b.dir, "machineadm")
	if err := os.WriteFile(c.Path, data, 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	err = filepath.WalkDir(b.dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, nobody, nobody))
	})
	if err != nil {
		t.Fatal(err)
	}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	s := begin(t, c, 80, 24)
	s.shows("at work             1s  Noop/third (test)")
	s.types("\x03")
	s.ends(report.ExitInterrupted)
	s.left(80)
}
