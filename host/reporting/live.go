package reporting

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/machineadm/machineadm/host/run"
)

const (
	refresh = time.Second
	// The status line is written with automatic wrapping (DECAWM) off: the terminal cuts what is too long for its width.
	wrapOff, wrapOn = "\x1b[?7l", "\x1b[?7h"
	eraseLine       = "\r\x1b[K"
	longestStatus   = 400 // runes
)

// Live writes the lines of Text to a terminal and keeps a status line below them: how far the run is, and the change in
// hand. It is also the writer for everything else that goes to the terminal during the run, such as the log.
type Live struct {
	text    Text
	out     io.Writer
	ended   chan struct{}
	stopped chan struct{}

	mu                   sync.Mutex
	began                time.Time
	total, planned, done int
	applying             bool
	current              string // document, and what is done for it
	line                 string // the status line on the terminal
}

// NewLive returns a Live for a terminal. The errors of the run go to errors; nil means to the terminal. The caller calls
// Close.
func NewLive(terminal io.Writer, c Color, errors io.Writer) *Live {
	l := &Live{out: terminal, ended: make(chan struct{}), stopped: make(chan struct{})}
	l.text = Text{Out: l, Err: errors, Color: c}
	if errors == nil {
		l.text.Err = l
	}
	go l.tick()
	return l
}

// Observe takes an event.
func (l *Live) Observe(e run.Event) {
	l.mu.Lock()
	l.take(e)
	l.mu.Unlock()
	switch e.Type {
	case run.EventDocumentStarted, run.EventChangeStarted, run.EventProgress: // in the status line
	default:
		l.text.Observe(e)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draw()
}

func (l *Live) take(e run.Event) {
	switch e.Type {
	case run.EventRunStarted:
		l.began, l.total = e.Time, len(e.Report.Documents)
	case run.EventDocumentPlanned:
		l.planned++
	case run.EventDocumentStarted:
		l.applying, l.current = true, name(e.Document)+by(e.Document)
	case run.EventChangeStarted:
		l.current = name(e.Document) + ": " + Escape(e.Change.Summary)
	case run.EventProgress, run.EventRetry:
		l.current = name(e.Document) + ": " + Escape(e.Message)
	case run.EventChangeFinished:
		l.current = name(e.Document)
	case run.EventDocumentFinished:
		l.applying, l.current = true, ""
		l.done++
	case run.EventRunFinished:
		l.began = time.Time{}
	case run.EventWarning:
	}
}

// Write writes whole lines above the status line.
func (l *Live) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	n, err := l.out.Write(p)
	l.draw()
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

// tick renews the elapsed time.
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
			l.draw()
			l.mu.Unlock()
		}
	}
}

// draw writes the status line if it has changed. Errors are dropped: a terminal that is gone must not stop a run.
func (l *Live) draw() {
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

// status is the status line, empty when no run is under way.
func (l *Live) status(now time.Time) string {
	if l.began.IsZero() {
		return ""
	}
	n, verb := l.planned, "planned"
	if l.applying {
		n, verb = l.done, "done"
	}
	text := fmt.Sprintf("%d of %s %s", n, documents(l.total), verb)
	if elapsed := now.Sub(l.began).Truncate(time.Second); elapsed > 0 {
		text += ", " + brief(elapsed)
	}
	if l.current != "" {
		text += ": " + l.current
	}
	if runes := []rune(text); len(runes) > longestStatus {
		text = string(runes[:longestStatus])
	}
	return l.text.Color.paint(bold, strings.ReplaceAll(text, "\n", " "))
}
