// Package wire is what a test and the agent in its virtual machine say to each other, over one stream of bytes: many
// commands at a time, each with its own number.
package wire

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
)

// Kind is what a frame means.
type Kind byte

// From the test.
const (
	Start    Kind = iota + 1 // begin a command: a Command as JSON
	Stdin                    // a piece of its stdin
	StdinEnd                 // there is no more of it
	Kill                     // end the command and all its children
)

// From the agent. A command's last frame is Exit or Failed.
const (
	Hello  Kind = iota + 101 // the agent runs (number 0)
	Up                       // the boot is finished (number 0)
	Stdout                   // a piece of a command's stdout
	Stderr                   // a piece of its stderr
	Taken                    // the command took one Stdin frame
	Exit                     // it ended: its exit status in decimal digits
	Failed                   // it could not be run, or not be followed to its end: why
)

// Command is the payload of Start.
type Command struct {
	Argv  []string
	Stdin bool // Stdin frames and StdinEnd follow
}

// PortName is the name of the virtio-serial port between the two.
const PortName = "machineadm.testenv"

const (
	// Piece is how much of a stream goes into one frame.
	Piece = 32 << 10
	// Window is how many Stdin frames a command may be sent before it took the first of them. The agent keeps that
	// many, so that a command that does not read never keeps it from serving the others.
	Window = 16
	// Longest bounds a frame. Only Start can be longer than a piece: an argument vector of Linux is at most 2 MiB.
	Longest = 4 << 20
)

// Frame is one message.
type Frame struct {
	Kind    Kind
	Call    uint32
	Payload []byte
}

const headerSize = 9 // kind, number and length of the payload, big-endian

// Conn sends and receives frames. Any number of goroutines may send; one receives.
type Conn struct {
	r  *bufio.Reader
	mu sync.Mutex // of w
	w  io.Writer
}

// NewConn is for both ends.
func NewConn(rw io.ReadWriter) *Conn { return &Conn{r: bufio.NewReaderSize(rw, Piece), w: rw} }

// Send blocks while the other end does not read.
func (c *Conn) Send(f Frame) error {
	if len(f.Payload) > Longest {
		return fmt.Errorf("a message of %d bytes is too long", len(f.Payload))
	}
	message := make([]byte, headerSize, headerSize+len(f.Payload))
	message[0] = byte(f.Kind)
	binary.BigEndian.PutUint32(message[1:], f.Call)
	binary.BigEndian.PutUint32(message[5:], uint32(len(f.Payload)))
	message = append(message, f.Payload...)
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.w.Write(message)
	return err
}

// Receive returns io.EOF at the end of the stream. The payload is the caller's.
func (c *Conn) Receive() (Frame, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(c.r, header[:]); err != nil {
		return Frame{}, err
	}
	length := binary.BigEndian.Uint32(header[5:])
	if length > Longest {
		return Frame{}, fmt.Errorf("a message of %d bytes: this is not our stream", length)
	}
	f := Frame{Kind: Kind(header[0]), Call: binary.BigEndian.Uint32(header[1:]), Payload: make([]byte, length)}
	if _, err := io.ReadFull(c.r, f.Payload); err != nil {
		return Frame{}, fmt.Errorf("a message was cut off: %w", err)
	}
	return f, nil
}

// Stream sends what is written to it as frames of a kind.
func (c *Conn) Stream(kind Kind, call uint32) io.Writer { return stream{c, kind, call} }

type stream struct {
	conn *Conn
	kind Kind
	call uint32
}

func (s stream) Write(p []byte) (n int, err error) {
	for n < len(p) {
		piece := p[n:min(n+Piece, len(p))]
		if err := s.conn.Send(Frame{Kind: s.kind, Call: s.call, Payload: piece}); err != nil {
			return n, err
		}
		n += len(piece)
	}
	return n, nil
}
