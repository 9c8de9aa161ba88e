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
	wire    *wire // to be sealed; nil for TLS and nothing else
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
	if m.wire != nil {
		want = sealed
	}
	if len(offer) != 4 || offer[0]&want == 0 {
		return nil, fmt.Errorf("the domain controller offers the protections %x, not %d", offer, want)
	}
	answer := []byte{want, 0, 0, 0}
	if m.wire != nil {
		binary.BigEndian.PutUint32(answer, uint32(want)<<24|maxFrame)
		m.wire.reads.Store(m.context)
	}
	return m.context.Wrap(answer, false)
}

// DeleteSecContext has nothing to release.
func (m *mechanism) DeleteSecContext() error { return nil }

// maxFrame bounds a frame, in bytes. The controller learns it with the negotiation.
const maxFrame = 1 << 20

// protection is a kerberos.Context.
type protection interface {
	Wrap(data []byte, seal bool) ([]byte, error)
	Unwrap(token []byte, sealed bool) ([]byte, error)
}

// wire is a connection whose messages are sealed once a negotiation has ended, each in a frame with its length (RFC 4422, section
// 3.7). It refuses messages that exceed the limits of its guard.
type wire struct {
	net.Conn
	guard *guard
	// reads has the protection from before the request that ends the negotiation: the reply to it is the last message that is not
	// sealed. Anything else behind it was forged on the way. Writes has the protection from that reply on.
	reads, writes atomic.Value
	write         sync.Mutex

	ended bool   // that reply has arrived
	raw   []byte // read, and not unsealed yet
	plain []byte // not delivered yet
}

// Read implements net.Conn.
func (w *wire) Read(p []byte) (int, error) {
	for len(w.plain) == 0 {
		if whole, err := w.next(); err != nil {
			return 0, err
		} else if whole {
			continue
		}
		n, err := w.Conn.Read(p)
		if n == 0 {
			return n, err
		}
		if w.reads.Load() == nil {
			if refused := w.guard.check(p[:n]); refused != nil {
				return 0, refused
			}
			return n, err
		}
		w.raw = append(w.raw, p[:n]...)
	}
	n := copy(p, w.plain)
	w.plain = w.plain[n:]
	return n, nil
}

// next delivers what raw has of the reply that ends the negotiation, then unseals the first frame behind it. It reports whether there
// was anything.
func (w *wire) next() (bool, error) {
	context, ok := w.reads.Load().(protection)
	if !ok {
		return false, nil
	}
	if !w.ended {
		n, ended, err := w.guard.next(w.raw)
		w.plain, w.raw, w.ended = w.raw[:n], w.raw[n:], ended
		return n > 0, err
	}
	if len(w.raw) < 4 {
		return false, nil
	}
	size := binary.BigEndian.Uint32(w.raw)
	if size > maxFrame {
		return false, errors.New("a frame of the sealed connection is too long")
	}
	end := 4 + int(size)
	if end > len(w.raw) {
		return false, nil
	}
	token := w.raw[4:end]
	w.raw = w.raw[end:]
	plain, err := context.Unwrap(token, true)
	if err == nil {
		err = w.guard.check(plain)
	}
	if err == nil {
		w.plain = plain
	}
	return true, err
}

// Write implements net.Conn.
func (w *wire) Write(p []byte) (int, error) {
	context, ok := w.writes.Load().(protection)
	if !ok {
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
