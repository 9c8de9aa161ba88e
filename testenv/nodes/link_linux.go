package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/machineadm/machineadm/testenv/nodes/internal/wire"
)

// link is this end of the connection to the agent in a virtual machine, from one power-on to the next power-off.
type link struct {
	conn   *wire.Conn
	socket net.Conn
	hello  chan struct{} // closed when the agent runs
	up     chan struct{} // closed when the boot is finished
	end    chan struct{} // closed when the machine is gone

	mu    sync.Mutex
	last  uint32
	calls map[uint32]*call
}

// call is one command in progress.
type call struct {
	command
	room  chan struct{} // one token for each Stdin frame that may be sent
	fed   chan error    // gets the end of stdin
	ended chan struct{} // closed when exit and err are set
	exit  int
	err   error
}

// killTimeout is how long a machine that emulates slowly may take to say that a killed command is gone.
const killTimeout = 30 * time.Second

func newLink(socket net.Conn) *link {
	l := &link{
		conn: wire.NewConn(socket), socket: socket, calls: map[uint32]*call{},
		hello: make(chan struct{}), up: make(chan struct{}), end: make(chan struct{}),
	}
	go l.receive()
	return l
}

func (l *link) close() error { return l.socket.Close() }

// receive ends with the connection, which the end of the machine closes.
func (l *link) receive() {
	defer close(l.end)
	for {
		f, err := l.conn.Receive()
		if err != nil {
			return
		}
		switch f.Kind {
		case wire.Hello:
			close(l.hello)
		case wire.Up:
			close(l.up)
		default:
			l.deliver(f)
		}
	}
}

// deliver holds the lock while it writes: an abandoned command gets no more data.
func (l *link) deliver(f wire.Frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, ok := l.calls[f.Call]
	if !ok {
		return
	}
	switch f.Kind {
	case wire.Stdout:
		c.collect(c.stdout, f.Payload)
	case wire.Stderr:
		c.collect(c.stderr, f.Payload)
	case wire.Taken:
		c.room <- struct{}{}
	case wire.Exit:
		exit, err := strconv.Atoi(string(f.Payload))
		c.exit, c.err = exit, errors.Join(c.err, err)
		l.forget(f.Call, c)
	case wire.Failed:
		c.err = errors.Join(c.err, errors.New(string(f.Payload)))
		l.forget(f.Call, c)
	}
}

func (c *call) collect(w io.Writer, p []byte) {
	if _, err := w.Write(p); err != nil {
		c.err = errors.Join(c.err, err)
	}
}

// forget is called with the lock held.
func (l *link) forget(id uint32, c *call) {
	delete(l.calls, id)
	close(c.ended)
}

// run is backend.exec.
func (l *link) run(ctx context.Context, c command) (int, error) {
	start, err := json.Marshal(wire.Command{Argv: c.argv, Stdin: c.stdin != nil})
	if err != nil {
		return 0, err
	}
	if len(start) > wire.Longest {
		return 0, errors.New("the command is too long")
	}
	id, running := l.add(c)
	defer l.abandon(id)
	running.fed = make(chan error, 1)
	go func() { running.fed <- l.feed(id, running, start) }()
	select {
	case <-running.ended:
		return running.finish()
	case <-l.end:
		if closed(running.ended) { // its last output came with the machine's
			return running.finish()
		}
		return 0, errOff
	case <-ctx.Done():
		l.kill(id, running)
		return 0, ctx.Err()
	}
}

// finish waits until stdin has no reader, so that the caller can use it again.
func (c *call) finish() (int, error) {
	select {
	case err := <-c.fed:
		return c.exit, errors.Join(c.err, err)
	case <-time.After(outputGrace):
		return c.exit, errors.Join(c.err, errors.New("it ended, but its stdin is still being read"))
	}
}

func (l *link) add(c command) (uint32, *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	running := &call{command: c, room: make(chan struct{}, wire.Window), ended: make(chan struct{})}
	for range wire.Window {
		running.room <- struct{}{}
	}
	l.calls[l.last] = running
	return l.last, running
}

// abandon stops waiting for a command that has not ended.
func (l *link) abandon(id uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.calls, id)
}

// kill returns when the command and its children are gone, or their machine is, or does not confirm in time.
func (l *link) kill(id uint32, c *call) {
	// Beside, because a machine that hangs does not read; its end will end this too.
	go l.conn.Send(wire.Frame{Kind: wire.Kill, Call: id}) //nolint:errcheck // the end of the machine ends the command
	select {
	case <-c.ended:
	case <-l.end:
	case <-time.After(killTimeout):
	}
}

// feed starts the command and sends it stdin, until that or the command ends.
func (l *link) feed(id uint32, c *call, start []byte) error {
	if err := l.conn.Send(wire.Frame{Kind: wire.Start, Call: id, Payload: start}); err != nil {
		return err
	}
	if c.stdin == nil {
		return nil
	}
	piece := make([]byte, wire.Piece)
	for {
		n, err := c.stdin.Read(piece)
		if n > 0 {
			select {
			case <-c.room:
			case <-c.ended:
				return nil
			case <-l.end:
				return errOff
			}
			if err := l.conn.Send(wire.Frame{Kind: wire.Stdin, Call: id, Payload: piece[:n]}); err != nil {
				return err
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return errors.Join(err, l.conn.Send(wire.Frame{Kind: wire.StdinEnd, Call: id}))
		}
	}
}
