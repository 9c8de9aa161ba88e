package directory

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/kerberos"
)

// mechanism is GSSAPI of RFC 4752 for go-ldap, whose own client never protects a connection.
type mechanism struct {
	ticket  *kerberos.Ticket
	binding []byte
	seal    bool
	context *kerberos.Context
}

// InitSecContext is unused: go-ldap calls InitSecContextWithOptions.
func (m *mechanism) InitSecContext(target string, token []byte) ([]byte, bool, error) {
	return m.InitSecContextWithOptions(target, token, nil)
}

// InitSecContextWithOptions returns the first token, and reads the controller's reply to it.
func (m *mechanism) InitSecContextWithOptions(_ string, token []byte, _ []int) (reply []byte, more bool, err error) {
	if token == nil {
		m.context, reply, err = m.ticket.Begin(m.binding)
		return reply, true, err
	}
	return []byte{}, false, m.context.Accept(token)
}

// NegotiateSaslAuth chooses what protects the connection from here on: the seal, or TLS and nothing else.
func (m *mechanism) NegotiateSaslAuth(token []byte, _ string) ([]byte, error) {
	const none, sealed = 1, 4
	offer, err := m.context.Unwrap(token, false)
	if err != nil {
		return nil, err
	}
	want := byte(none)
	if m.seal {
		want = sealed
	}
	if len(offer) != 4 || offer[0]&want == 0 {
		return nil, fmt.Errorf("the domain controller offers the protections %x, not %d", offer, want)
	}
	answer := []byte{want, 0, 0, 0}
	if m.seal {
		binary.BigEndian.PutUint32(answer, uint32(want)<<24|maxFrame)
	}
	return m.context.Wrap(answer, false)
}

// DeleteSecContext has nothing to release.
func (m *mechanism) DeleteSecContext() error { return nil }

// maxFrame bounds a frame, in bytes.
const maxFrame = 0xffffff

// wire is a connection whose messages are sealed once it has a context, each in a frame with its length (RFC 4422, section 3.7).
type wire struct {
	net.Conn
	context atomic.Pointer[kerberos.Context]
	write   sync.Mutex

	frames, plain []byte // read and not unsealed yet; unsealed and not delivered yet
}

// Read implements net.Conn. Which side of the negotiation's end the bytes belong to is known only after they have arrived.
func (w *wire) Read(p []byte) (int, error) {
	for len(w.plain) == 0 {
		if size := w.frame(); size > 0 {
			var err error
			if w.plain, err = w.context.Load().Unwrap(w.frames[4:size], true); err != nil {
				return 0, err
			}
			w.frames = w.frames[size:]
			continue
		}
		if len(w.frames) > maxFrame {
			return 0, errors.New("a frame of the sealed connection is too long")
		}
		n, err := w.Conn.Read(p)
		if w.context.Load() == nil || n == 0 {
			return n, err
		}
		w.frames = append(w.frames, p[:n]...)
	}
	n := copy(p, w.plain)
	w.plain = w.plain[n:]
	return n, nil
}

// frame is the size of the first whole frame, 0 if there is none.
func (w *wire) frame() int {
	if len(w.frames) < 4 {
		return 0
	}
	if size := uint64(binary.BigEndian.Uint32(w.frames)) + 4; size <= uint64(len(w.frames)) {
		return int(size) //nolint:gosec // not more than what is there
	}
	return 0
}

// Write implements net.Conn.
func (w *wire) Write(p []byte) (int, error) {
	context := w.context.Load()
	if context == nil {
		return w.Conn.Write(p)
	}
	w.write.Lock()
	defer w.write.Unlock()
	token, err := context.Wrap(p, true)
	if err != nil {
		return 0, err
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(token))) //nolint:gosec // a request of ours
	if _, err := w.Conn.Write(append(frame, token...)); err != nil {
		return 0, err
	}
	return len(p), nil
}
