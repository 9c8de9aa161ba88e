package reporting

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run"
)

// film shows every scene: what it leaves for good, then the live region.
func film(color Color, width, height int) string {
	var b strings.Builder
	var l list
	now := moment()
	for _, s := range scenes() {
		fmt.Fprintf(&b, "# %s\n", s.name)
		for _, e := range s.events {
			for _, r := range l.take(e) {
				for _, line := range r.lines(width) {
					b.WriteString(line.paint(color) + "\n")
				}
			}
		}
		now = now.Add(s.after)
		b.WriteString("# live\n")
		for _, line := range frame(&l, width, height, now) {
			b.WriteString(line.paint(color) + "\n")
		}
	}
	return b.String()
}

func TestFrames(t *testing.T) {
	t.Parallel()
	for _, width := range []int{20, 80, 200} {
		golden(t, fmt.Sprintf("live/%d.txt", width), film(false, width, 24))
		golden(t, fmt.Sprintf("live/%d, color.txt", width), film(true, width, 24))
	}
	golden(t, "live/80, 7 lines.txt", film(false, 80, 7))
}

// TestColorChangesNothingElse compares what is left when the colours are taken out.
func TestColorChangesNothingElse(t *testing.T) {
	t.Parallel()
	colors := regexp.MustCompile("\x1b\\[[0-9;]*m")
	for _, width := range []int{1, 20, 80, 200} {
		plain, colored := film(false, width, 24), film(true, width, 24)
		if strings.Contains(plain, "\x1b") {
			t.Errorf("at %d columns there is colour where there must be none", width)
		}
		if !strings.Contains(colored, "\x1b[31m") && !strings.Contains(colored, "\x1b[1;31m") {
			t.Errorf("at %d columns there is no colour", width)
		}
		if colors.ReplaceAllString(colored, "") != plain {
			t.Errorf("at %d columns colour changes more than colours", width)
		}
	}
}

// TestEveryFrameFits goes through every size of a terminal at every scene.
func TestEveryFrameFits(t *testing.T) {
	t.Parallel()
	var l list
	now := moment()
	for _, s := range scenes() {
		var left []row
		for _, e := range s.events {
			left = append(left, l.take(e)...)
		}
		now = now.Add(s.after)
		for width := range 202 {
			for _, r := range left {
				checkLines(t, s.name, r.lines(width+1), width+1)
			}
			for _, height := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 24, 60, 1000} {
				lines := frame(&l, width+1, height, now)
				checkLines(t, s.name, lines, width+1)
				if len(lines) > max(0, height-1) || len(lines) > mostRows || height > 2*mostRows && len(lines) > height/2 {
					t.Fatalf("%s: %d lines in a terminal of %d", s.name, len(lines), height)
				}
				if height >= 2 && len(lines) == 0 && !l.over {
					t.Fatalf("%s: nothing is shown in a terminal of %d lines", s.name, height)
				}
			}
		}
	}
}

func checkLines(t *testing.T, name string, lines []line, width int) {
	t.Helper()
	for _, line := range lines {
		text := line.paint(false)
		if n := cells(text); n > width || n != line.cells() {
			t.Fatalf("%s: %q fills %d cells of %d", name, text, n, width)
		}
		if Escape(text) != text {
			t.Fatalf("%s: %q is not safe to show", name, text)
		}
	}
}

// TestTheListForgetsNothingImportant: in a low terminal, what goes on is shown before what is done or waits.
func TestTheListForgetsNothingImportant(t *testing.T) {
	t.Parallel()
	var l list
	for _, s := range scenes() {
		for _, e := range s.events {
			l.take(e)
		}
		if s.name == "progress" {
			break
		}
	}
	for height, want := range map[int]string{
		2: "at work", 3: "at work|documents done", 4: "at work|progress|documents done", 5: "at work|doing|progress|documents done",
		6: "at work|doing|progress|waiting|documents done",
	} {
		var got strings.Builder
		for _, line := range frame(&l, 80, height, moment().Add(time.Minute)) {
			got.WriteString(line.paint(false) + "\n")
		}
		last := -1
		for word := range strings.SplitSeq(want, "|") {
			at := strings.Index(got.String(), word)
			if at <= last {
				t.Errorf("in %d lines %q is missing or out of order:\n%s", height, word, got.String())
			}
			last = at
		}
		if n := strings.Count(got.String(), "\n"); n != strings.Count(want, "|")+1 {
			t.Errorf("in %d lines there are %d:\n%s", height, n, got.String())
		}
	}
}

// TestManyDocuments: the live region of a long stream is as small as that of a short one.
func TestManyDocuments(t *testing.T) {
	t.Parallel()
	r := head(report.RunRunning, 0)
	for i := range 4000 {
		r.Documents = append(r.Documents, report.Document{Index: i, Kind: "FooBar", Name: fmt.Sprintf("n-%d", i)})
	}
	var l list
	l.take(run.Event{Type: run.EventRunStarted, Time: moment(), Report: &r})
	l.take(run.Event{Type: run.EventDocumentPlanned, Time: moment(), Document: &r.Documents[0]})
	var got []string
	for _, line := range frame(&l, 80, 50, moment()) {
		got = append(got, strings.TrimRight(line.paint(false), " "))
	}
	want := []string{
		"planning                FooBar/n-1", "waiting                 FooBar/n-2", "waiting                 FooBar/n-3",
		"waiting                 FooBar/n-4", "waiting                 3995 more documents", "1 of 4000 documents planned",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// TestAListOfStrangers: an event that does not fit stops nobody.
func TestAListOfStrangers(t *testing.T) {
	t.Parallel()
	d, c := sysctl(), change("x", report.Changed, 1)
	for _, kind := range []run.EventType{
		run.EventDocumentPlanned, run.EventDocumentStarted, run.EventChangeStarted, run.EventChangeFinished, run.EventProgress,
		run.EventWarning, run.EventRetry, run.EventDocumentFinished, "unheard-of",
	} {
		for _, known := range []bool{false, true} {
			var l list
			if known {
				r := head(report.RunRunning, 0, d)
				l.take(run.Event{Type: run.EventRunStarted, Time: moment(), Report: &r})
			}
			l.take(run.Event{Type: kind, Time: moment(), Document: &d, Change: &planEvents()[1].Planned[0], Result: &c})
			frame(&l, 80, 24, moment())
		}
	}
}

func TestTook(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration][2]string{ // ended, and going on
		0:                       {"<1ms", ""},
		12 * time.Millisecond:   {"12ms", ""},
		999 * time.Millisecond:  {"999ms", ""},
		1499 * time.Millisecond: {"1.5s", "1s"},
		59 * time.Second:        {"59.0s", "59s"},
		time.Minute:             {"1m", "1m"},
		61*time.Second + 1:      {"1m1s", "1m1s"},
		time.Hour:               {"1h", "1h"},
		time.Hour + time.Second: {"1h0m1s", "1h0m1s"},
		-time.Second:            {"<1ms", ""},
	} {
		if got := [2]string{took(d, false), took(d, true)}; got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}
