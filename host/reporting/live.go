package reporting

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/machineadm/machineadm/host/run"
)

// Terminal is what Live draws on.
type Terminal interface {
	io.Writer
	// Size is its width and height in cells; zero when that is not known.
	Size() (width, height int)
	// Cancel has a Write that is under way return, and every later one fail. It says whether it can.
	Cancel() bool
}

const (
	every    = 100 * time.Millisecond
	patience = 5 * time.Second // with a terminal that takes nothing more, once the run is over
	backlog  = 16 << 20        // bytes that wait for the terminal: more than all the errors of a stream
	portion  = 1 << 10         // bytes of one Write
)

// Live shows an apply on a terminal: what is done scrolls up and stays; below it, redrawn in place, stands what goes on.
// Whoever tells it something never waits for the terminal. It is also the writer for everything else that is shown
// there while the run goes on, such as the log.
type Live struct {
	terminal Terminal
	color    Color
	errors   io.Writer
	done     chan struct{}
	wake     chan struct{} // there is no need to wait for the next tick
	written  atomic.Int64

	mu      sync.Mutex
	list    list
	queue   []item
	size    int    // of queue
	lost    int    // items that were too many
	partial string // the beginning of a line whose end was not written yet
	afresh  bool
	closed  bool
}

// item is something that stays: a row of the list, or lines as they are.
type item struct {
	row  *row
	text string
}

func (i item) size() int {
	if i.row != nil {
		return len(i.row.text) + 64
	}
	return len(i.text)
}

// NewLive starts to draw. Close must be called. The errors of the run go to errors; nil means to the terminal, too.
func NewLive(t Terminal, c Color, errors io.Writer) *Live {
	l := &Live{terminal: t, color: c, errors: errors, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	if errors == nil {
		l.errors = l
	}
	go l.loop()
	return l
}

// Observe takes an event.
func (l *Live) Observe(e run.Event) {
	l.mu.Lock()
	for _, r := range l.list.take(e) {
		l.add(item{row: &r})
	}
	l.mu.Unlock()
	if e.Type == run.EventRunFinished {
		Errors(l.errors, e.Report)
		outcome, text := runWord(e.Report.Outcome), closing(e.Report)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.add(item{row: &row{state: outcome, style: outcomeStyle(e.Report.Outcome), text: strings.TrimPrefix(text, outcome), bare: true}})
	}
}

// Write shows whole lines above the live region. It never fails: a terminal that is gone is no concern of who writes.
func (l *Live) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.partial + string(p)
	end := strings.LastIndexByte(text, '\n') + 1
	l.partial = text[end:]
	if end > 0 {
		l.add(item{text: text[:end]})
	}
	return len(p), nil
}

// Stopping says that the run was asked to end early.
func (l *Live) Stopping() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list.stopping = true
}

// Afresh has the live region drawn anew below what somebody else has written, such as the shell that the process was
// stopped from.
func (l *Live) Afresh() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.afresh = true
}

// Close shows what is left to show and takes the live region away. It returns when the terminal has taken everything, or
// takes nothing more.
func (l *Live) Close() {
	l.mu.Lock()
	if !l.closed && l.partial != "" {
		l.add(item{text: l.partial + "\n"})
	}
	l.closed, l.partial = true, ""
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
	for {
		written := l.written.Load()
		select {
		case <-l.done:
			return
		case <-time.After(patience):
		}
		if l.written.Load() != written {
			continue
		}
		if l.terminal.Cancel() {
			<-l.done
		}
		return
	}
}

// add keeps something for the terminal. The last words are the most important: of too much, the oldest is dropped.
func (l *Live) add(i item) {
	select {
	case <-l.done: // the terminal is gone
		return
	default:
	}
	l.queue, l.size = append(l.queue, i), l.size+i.size()
	for l.size > backlog && len(l.queue) > 1 {
		l.size -= l.queue[0].size()
		l.queue, l.lost = l.queue[1:], l.lost+1
	}
}

// loop writes. It ends after Close, or when the terminal is gone.
func (l *Live) loop() {
	defer close(l.done)
	tick := time.NewTicker(every)
	defer tick.Stop()
	var c canvas
	for {
		select {
		case <-tick.C:
		case <-l.wake:
		}
		text, last := l.next(&c)
		for len(text) > 0 {
			n, err := io.WriteString(l.terminal, text[:min(len(text), portion)])
			l.written.Add(int64(n))
			if err != nil {
				return
			}
			text = text[n:]
		}
		if last {
			return
		}
	}
}

// next is what is to be written now, and whether nothing will follow.
func (l *Live) next(c *canvas) (text string, last bool) {
	width, height := l.terminal.Size()
	if width < 1 || height < 1 {
		width, height = 80, 24 // a serial line that nobody has told
	}
	room := max(1, width-1) // some terminals wrap as soon as the last cell is filled
	l.mu.Lock()
	queue, lost, afresh, last := l.queue, l.lost, l.afresh, l.closed
	l.queue, l.size, l.lost, l.afresh = nil, 0, 0, false
	var live []line
	if !last {
		live = frame(&l.list, room, height, time.Now())
	}
	l.mu.Unlock()

	var above strings.Builder
	if lost > 0 {
		fmt.Fprintf(&above, "(%d texts left out: the terminal did not keep up)\n", lost)
	}
	for _, i := range queue {
		above.WriteString(i.text)
		if i.row != nil {
			for _, line := range i.row.lines(room) {
				above.WriteString(line.paint(l.color) + "\n")
			}
		}
	}
	if afresh {
		*c = canvas{}
	}
	return c.draw(above.String(), live, l.color, width), last
}
