package cli

import (
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/host/run"
)

// show is how an apply is shown: on a terminal as a live list, elsewhere as lines. What else is said while the run goes
// on is to be written to the streams that come back. The caller calls end.
func (o *applyFlags) show(s streams) (observe func(run.Event), _ streams, end func()) {
	lines := reporting.Text{Out: s.out, Err: s.err}.Observe
	if o.output != "text" {
		return choose(o, s.out, lines), s, func() {}
	}
	t, ok := openTerminal(s.out)
	if !ok {
		return lines, s, func() {}
	}
	errors := s.err
	if sameTerminal(s.out, s.err) {
		errors = nil
	}
	live := reporting.NewLive(t, colors(), errors)
	s.out = live
	if errors == nil {
		s.err = live
	}
	w := &watcher{live: live}
	return w.observe, s, func() {
		w.end()
		live.Close()
		t.Close()
	}
}

// coloring says whether what goes to out is coloured. The caller calls end.
func coloring(out io.Writer) (_ reporting.Color, end func()) {
	t, ok := openTerminal(out)
	if !ok {
		return false, func() {}
	}
	return colors(), t.Close
}

// colors: https://no-color.org.
func colors() reporting.Color { return os.Getenv("NO_COLOR") == "" }

// watcher tells the live view of signals, as long as the run handles them: before and after, they end the process.
type watcher struct {
	live    *reporting.Live
	signals chan os.Signal
	done    chan struct{}
}

func (w *watcher) observe(e run.Event) {
	switch e.Type {
	case run.EventRunStarted:
		w.begin()
	case run.EventRunFinished:
		w.end()
	default:
	}
	w.live.Observe(e)
}

func (w *watcher) begin() {
	w.signals, w.done = make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(w.signals, append(continued(), os.Interrupt, syscall.SIGTERM)...)
	go func() {
		defer close(w.done)
		for s := range w.signals {
			if s == os.Interrupt || s == syscall.SIGTERM {
				w.live.Stopping()
			} else {
				w.live.Afresh()
			}
		}
	}()
}

// end is for every end of the run, also one that no event tells.
func (w *watcher) end() {
	if w.signals == nil {
		return
	}
	signal.Stop(w.signals)
	close(w.signals)
	<-w.done
	w.signals = nil
}

// terminal is standard output, where that is a terminal that can be drawn on.
type terminal struct {
	file    *os.File
	restore func()
}

// Write implements reporting.Terminal.
func (t *terminal) Write(p []byte) (int, error) { return t.file.Write(p) }

// Cancel implements reporting.Terminal.
func (t *terminal) Cancel() bool { return t.file.SetWriteDeadline(time.Unix(1, 0)) == nil }

// Close leaves the terminal as it was.
func (t *terminal) Close() { t.restore() }
