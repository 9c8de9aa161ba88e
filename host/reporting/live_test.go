package reporting

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machineadm/machineadm/host/run"
)

// fakeTerminal takes what is written, unless it is told not to.
type fakeTerminal struct {
	width, height int
	canCancel     bool

	mu       sync.Mutex
	got      bytes.Buffer
	writes   int
	err      error
	stop     chan struct{} // a Write waits until it is closed
	canceled chan struct{}
}

func newFakeTerminal() *fakeTerminal {
	return &fakeTerminal{width: 81, height: 24, canCancel: true, canceled: make(chan struct{})}
}

func (f *fakeTerminal) Write(p []byte) (int, error) {
	f.mu.Lock()
	f.writes++
	stop, err := f.stop, f.err
	f.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if stop != nil {
		select {
		case <-stop:
		case <-f.canceled:
			return 0, errBroken
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.got.Write(p)
}

func (f *fakeTerminal) Size() (width, height int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.width, f.height
}

func (f *fakeTerminal) Cancel() bool {
	if f.canCancel {
		close(f.canceled)
	}
	return f.canCancel
}

func (f *fakeTerminal) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeTerminal) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.got.String()
}

func (f *fakeTerminal) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes
}

// play tells a live view the scenes. Inside of a bubble the clock is the script's.
func play(l *Live, until string) {
	shift := time.Since(moment())
	for _, s := range scenes() {
		for _, e := range s.events {
			e.Time = e.Time.Add(shift)
			l.Observe(e)
		}
		time.Sleep(s.after)
		if s.name == until {
			return
		}
	}
}

// controls are what a live view may send besides text.
func controls() *regexp.Regexp { return regexp.MustCompile("\x1b\\[(?:[0-9;]*m|[KJ]|[0-9]*A)|[\r\n]") }

func TestLiveSaysEverything(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		terminal, other := newFakeTerminal(), new(strings.Builder)
		l := NewLive(terminal, true, other)
		play(l, "")
		l.Close()
		got := terminal.text()
		for _, want := range []string{
			"the hand wins", "changed", "not applicable", "create the account of service 13", "歡迎訊息", "loading module 3 of 5",
			"\x1b[1;31mFailed\x1b[0m: 26 documents: 2 changed",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not said", want)
			}
		}
		if want := "error: Motd/welcome: no\n"; other.String() != want || strings.Contains(got, want) {
			t.Errorf("the errors are %q, want %q", other, want)
		}
		rest := controls().ReplaceAllString(got, "")
		if Escape(rest) != rest {
			t.Errorf("the terminal is sent what it could obey: %q", rest)
		}
		if strings.Contains(got, "\n"+"Sysctl/base: changed") {
			t.Error("a line is forged")
		}
	})
}

// TestLiveWithoutColor: drawing goes on.
func TestLiveWithoutColor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		terminal := newFakeTerminal()
		l := NewLive(terminal, false, nil)
		play(l, "")
		l.Close()
		if got := terminal.text(); regexp.MustCompile("\x1b\\[[0-9;]*m").MatchString(got) || !strings.Contains(got, "\x1b[K") {
			t.Errorf("%q", got)
		}
	})
}

func TestLiveWaitsForNobody(t *testing.T) {
	t.Parallel()
	for name, canCancel := range map[string]bool{"a write that can be cancelled": true, "a write that cannot": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				terminal := newFakeTerminal()
				terminal.canCancel, terminal.stop = canCancel, make(chan struct{})
				l := NewLive(terminal, false, nil)
				begin := time.Now()
				var played time.Duration
				for _, s := range scenes() {
					played += s.after
				}
				play(l, "")
				if took := time.Since(begin); took != played {
					t.Errorf("the run was held up for %s", took-played)
				}
				if terminal.count() != 1 {
					t.Errorf("%d writes to a terminal that is stuck in the first", terminal.count())
				}
				begin = time.Now()
				l.Close()
				if took := time.Since(begin); took < patience || took > 2*patience {
					t.Errorf("Close waited for %s", took)
				}
				l.Close() // a second time
				if !canCancel {
					close(terminal.stop) // else the goroutine would stay, and the bubble complain
				}
			})
		})
	}
}

// TestLiveIsPatientAtTheEnd: a slow line is given the time that it needs, as long as it takes something.
func TestLiveIsPatientAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := &slowTerminal{fakeTerminal: newFakeTerminal(), pause: patience / 2}
		l := NewLive(slow, false, nil)
		for i := range 200 {
			_, _ = fmt.Fprintf(l, "%d %s\n", i, strings.Repeat("x", 100)) // it never fails
		}
		l.Close()
		if !strings.Contains(slow.text(), "\n199 x") {
			t.Error("the last line is lost")
		}
	})
}

type slowTerminal struct {
	*fakeTerminal
	pause time.Duration
}

func (s *slowTerminal) Write(p []byte) (int, error) {
	time.Sleep(s.pause)
	return s.fakeTerminal.Write(p)
}

// TestLiveKeepsTheLastWords of what is too much for a terminal that is stuck.
func TestLiveKeepsTheLastWords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		terminal := newFakeTerminal()
		stop := make(chan struct{})
		terminal.stop = stop
		l := NewLive(terminal, false, nil)
		_, _ = l.Write([]byte("first\n")) // it never fails
		time.Sleep(2 * every)
		line := strings.Repeat("x", 1023) + "\n"
		for range 3 * backlog / len(line) {
			_, _ = l.Write([]byte(line)) // as above
		}
		_, _ = l.Write([]byte("last")) // without an end
		l.mu.Lock()
		size := l.size
		l.mu.Unlock()
		if size > backlog {
			t.Errorf("%d bytes are kept", size)
		}
		close(stop)
		l.Close()
		got := terminal.text()
		if !strings.HasPrefix(got, "first\n(32769 texts left out: the terminal did not keep up)\nxxx") || !strings.HasSuffix(got, "x\nlast\n") {
			t.Errorf("%q ... %q", got[:100], got[len(got)-100:])
		}
	})
}

func TestATerminalThatWentAwayIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		terminal := newFakeTerminal()
		l := NewLive(terminal, false, nil)
		play(l, "the first change")
		terminal.set(func() { terminal.err = errors.New("input/output error") })
		before := terminal.count()
		log := slog.New(slog.NewTextHandler(l, nil))
		for range 100 {
			log.Error("the terminal is gone")
			time.Sleep(time.Second)
		}
		if n := terminal.count() - before; n != 1 {
			t.Errorf("%d writes to a terminal that is gone, want one", n)
		}
		l.mu.Lock()
		size := l.size
		l.mu.Unlock()
		if size > 1000 {
			t.Errorf("%d bytes are kept for a terminal that is gone", size)
		}
		l.Close()
	})
}

// TestNothingIsDrawnWithoutARun: what is written comes out as it is.
func TestNothingIsDrawnWithoutARun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		terminal := newFakeTerminal()
		l := NewLive(terminal, true, nil)
		time.Sleep(time.Minute)
		if terminal.count() != 0 {
			t.Errorf("%q", terminal.text())
		}
		_, _ = l.Write([]byte("a line, and a lo")) // it never fails
		time.Sleep(time.Second)
		_, _ = l.Write([]byte("ng one\n")) // as above
		l.Close()
		if got, want := terminal.text(), "a line, and a long one\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// TestOnlyWhatChangesIsDrawn: a serial line is slow.
func TestOnlyWhatChangesIsDrawn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		terminal := newFakeTerminal()
		l := NewLive(terminal, true, nil)
		play(l, "progress")
		time.Sleep(10*every - time.Millisecond)
		before, at := terminal.count(), len(terminal.text())
		time.Sleep(10 * time.Second)
		writes, bytes := terminal.count()-before, len(terminal.text())-at
		if writes > 20 || bytes > 10*220 {
			t.Errorf("%d writes of %d bytes in ten seconds in which only durations change", writes, bytes)
		}
		l.Close()
	})
}

// TestASizeThatNobodyKnows: a serial line is taken for what it most often is.
func TestASizeThatNobodyKnows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		terminal := newFakeTerminal()
		terminal.width, terminal.height = 0, 0
		l := NewLive(terminal, false, nil)
		play(l, "progress")
		l.Close()
		if got := terminal.text(); !strings.Contains(got, "Sysctl/base (procfs)\n") {
			t.Errorf("%q", got)
		}
	})
}

func TestStoppingIsShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		terminal := newFakeTerminal()
		l := NewLive(terminal, false, nil)
		play(l, "progress")
		l.Stopping()
		time.Sleep(time.Second)
		if got := terminal.text(); !strings.Contains(got, "stopping when the change in hand is done, 1m45s; interrupt again") {
			t.Errorf("%q", got)
		}
		l.Close()
	})
}

// TestAnEndWithoutNews: an observer is also told of runs that never began.
func TestAnEndWithoutNews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		terminal := newFakeTerminal()
		l := NewLive(terminal, false, nil)
		r := reports()["unreadable"]
		l.Observe(run.Event{Type: run.EventRunFinished, Time: time.Now(), Report: &r})
		l.Close()
		want := "/tmp/node.yaml: others can write to it (mode 0666)\n  hint: chmod go-w /tmp/node.yaml\nInvalid: 1 error; nothing was changed\n"
		if got := terminal.text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
