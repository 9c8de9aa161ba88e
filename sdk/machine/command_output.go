package machine

import (
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	// MaxOutputBytes is how much of each output stream is kept.
	MaxOutputBytes = 1 << 20
	// maxTailBytes bounds the output that a CommandError carries, and a line of Command.Output.
	maxTailBytes = 4 << 10
)

// capture keeps the start of a stream, and its end for errors. It reads everything, so that the writer never blocks.
type capture struct {
	head, tail []byte
	total      int
}

// Write never fails.
func (c *capture) Write(p []byte) (int, error) {
	c.total += len(p)
	c.head = append(c.head, p[:min(len(p), MaxOutputBytes-len(c.head))]...)
	c.tail = append(c.tail, p[max(0, len(p)-maxTailBytes):]...)
	c.tail = c.tail[max(0, len(c.tail)-maxTailBytes):]
	return len(p), nil
}

func (c *capture) truncated() bool { return c.total > len(c.head) }

func (c *capture) end() string {
	text := printable(strings.TrimSpace(string(c.tail)))
	text = text[max(0, len(text)-maxTailBytes):]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}

// lineWriter passes a stream on line by line. A line that is too long is split.
type lineWriter struct {
	mutex *sync.Mutex // shared by both streams
	line  func(string)
	rest  []byte
}

// Write never fails.
func (l *lineWriter) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, b := range p {
		if b == '\n' || len(l.rest) == maxTailBytes {
			l.flush()
		}
		if b != '\n' {
			l.rest = append(l.rest, b)
		}
	}
	return len(p), nil
}

// end passes on a last line that is not terminated.
func (l *lineWriter) end() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if len(l.rest) > 0 {
		l.flush()
	}
}

func (l *lineWriter) flush() {
	l.line(printable(strings.TrimRight(string(l.rest), "\r")))
	l.rest = l.rest[:0]
}
