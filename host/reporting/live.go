package reporting

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/machineadm/machineadm/host/reporting/words"
	"github.com/machineadm/machineadm/host/run"
)

const (
	refresh = time.Second
	// Without automatic wrapping (DECAWM), the terminal truncates a status line that is wider than its screen.
	wrapOff, wrapOn = "\x1b[?7l", "\x1b[?7h"
	eraseLine       = "\r\x1b[K"
	longestStatus   = 400 // runes
)

// Live writes the lines of Text to a terminal, with a status line below them: the progress of the run and the current
// change. It is also the writer for all other output to the terminal during the run, such as the log.
type Live struct {
	text    Text
	out     io.Writer
	ended   chan struct{}
	stopped chan struct{}

	mu                   sync.Mutex
	began                time.Time
	total, planned, done int
	applying             bool
	current              string // document and change
	line                 string // the status line on the terminal
}

// NewLive returns a Live for a terminal. The errors of the run go to errors, which has this width; nil means to the terminal.
// The caller calls Close.
func NewLive(terminal io.Writer, c Color, errors io.Writer, width int) *Live {
	l := &Live{out: terminal, ended: make(chan struct{}), stopped: make(chan struct{})}
	l.text = Text{Out: l, Err: errors, Color: c, Width: width}
	if errors == nil {
		l.text.Err = l
	}
	go l.tick()
	return l
}

// Observe renders an event.
func (l *Live) Observe(e run.Event) {
	l.mu.Lock()
	before := l.current
	l.update(e)
	again := e.Type == run.EventRetry && l.current == before // a run says time and again what it waits for
	l.mu.Unlock()
	switch {
	case e.Type == run.EventDocumentStarted, e.Type == run.EventChangeStarted, e.Type == run.EventProgress, again: // in the status line only
	case e.Type == run.EventChangeRunning: // the status line has the time
	default:
		l.text.Observe(e)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.render()
}

func (l *Live) update(e run.Event) {
	switch e.Type {
	case run.EventRunStarted:
		l.began, l.total = e.Time, len(e.Report.Documents)
	case run.EventDocumentPlanned:
		l.planned++
	case run.EventDocumentStarted:
		l.applying, l.current = true, words.Name(e.Document)+by(e.Document)
	case run.EventChangeStarted:
		l.current = words.Name(e.Document) + ": " + words.Escape(e.Change.Summary)
	case run.EventProgress, run.EventRetry:
		l.current = words.Name(e.Document) + ": " + words.Escape(e.Message)
	case run.EventChangeFinished:
		l.current = words.Name(e.Document)
	case run.EventDocumentFinished:
		l.applying, l.current = true, ""
		l.done++
	case run.EventRunFinished:
		l.began = time.Time{}
	case run.EventWarning, run.EventChangeRunning:
	}
}

// Write writes whole lines above the status line.
func (l *Live) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	n, err := l.out.Write(p)
	l.render()
	return n, err
}

// Close removes the status line.
func (l *Live) Close() {
	close(l.ended)
	<-l.stopped
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
}

// tick updates the elapsed time.
func (l *Live) tick() {
	defer close(l.stopped)
	ticker := time.NewTicker(refresh)
	defer ticker.Stop()
	for {
		select {
		case <-l.ended:
			return
		case <-ticker.C:
			l.mu.Lock()
			l.render()
			l.mu.Unlock()
		}
	}
}

// render writes the status line if it has changed. It ignores errors: a closed terminal must not stop a run.
func (l *Live) render() {
	text := l.status(time.Now())
	if text == l.line {
		return
	}
	l.erase()
	if text != "" {
		_, _ = io.WriteString(l.out, wrapOff+text+wrapOn)
	}
	l.line = text
}

func (l *Live) erase() {
	if l.line != "" {
		_, _ = io.WriteString(l.out, eraseLine)
	}
	l.line = ""
}

// status returns the status line; empty before and after the run.
func (l *Live) status(now time.Time) string {
	if l.began.IsZero() {
		return ""
	}
	n, verb := l.planned, "planned"
	if l.applying {
		n, verb = l.done, "done"
	}
	text := fmt.Sprintf("%d of %s %s", n, words.Documents(l.total), verb)
	if elapsed := now.Sub(l.began).Truncate(time.Second); elapsed > 0 {
		text += ", " + words.Brief(elapsed)
	}
	if l.current != "" {
		text += ": " + l.current
	}
	if runes := []rune(text); len(runes) > longestStatus {
		text = string(runes[:longestStatus])
	}
	return l.text.Color.paint(bold, strings.ReplaceAll(text, "\n", " "))
}
