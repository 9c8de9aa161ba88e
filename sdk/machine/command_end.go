package machine

import (
	"bytes"
	"context"
	"sync"
	"time"
)

// ending ends a command whose time is over: it asks the command to end, and kills it after the grace.
type ending struct {
	grace time.Duration
	kill  context.CancelFunc

	mutex sync.Mutex
	ask   func() error // nil where a command cannot be asked
	asked bool
}

func (e *ending) begin() {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.grace <= 0 || e.ask == nil || e.ask() != nil {
		e.kill()
		return
	}
	e.asked = true
	time.AfterFunc(e.grace, e.kill)
}

func (e *ending) wasAsked() bool {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.asked
}

// lines hands a stream on by lines. A line that is too long is divided.
type lines struct {
	mutex *sync.Mutex // of both streams
	line  func(string)
	rest  []byte
}

// Write never fails.
func (l *lines) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, b := range bytes.SplitAfter(p, []byte("\n")) {
		for len(l.rest)+len(b) > maxTailBytes {
			n := maxTailBytes - len(l.rest)
			l.rest = append(l.rest, b[:n]...)
			b = b[n:]
			l.flush()
		}
		l.rest = append(l.rest, b...)
		if bytes.HasSuffix(l.rest, []byte("\n")) {
			l.flush()
		}
	}
	return len(p), nil
}

// end hands on a last line that is not terminated.
func (l *lines) end() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if len(l.rest) > 0 {
		l.flush()
	}
}

func (l *lines) flush() {
	l.line(printable(string(bytes.TrimRight(l.rest, "\r\n"))))
	l.rest = l.rest[:0]
}
