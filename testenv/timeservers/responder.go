package timeservers

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net"
	"testing"
	"time"
)

// Reply makes the reply to a client's request that was received now; nil for none. A request has at least the 48 bytes
// of a header (RFC 5905 section 7.3), behind which its authentication is.
type Reply func(request []byte, now time.Time) []byte

// Respond answers the requests at a socket until the test ends.
func Respond(t testing.TB, conn net.PacketConn, reply Reply) {
	t.Helper()
	ended := make(chan error)
	go func() { ended <- Serve(conn, reply) }()
	t.Cleanup(func() {
		if err := errors.Join(conn.Close(), <-ended); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("answer at %s: %v", conn.LocalAddr(), err)
		}
	})
}

// Serve answers the requests at a socket until it is closed.
func Serve(conn net.PacketConn, reply Reply) error {
	buffer := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		request := buffer[:n]
		if n < headerSize || request[0]&7 != modeClient {
			continue
		}
		if answer := reply(request, time.Now()); answer != nil {
			if _, err := conn.WriteTo(answer, from); err != nil && !errors.Is(err, net.ErrClosed) {
				return err
			}
		}
	}
}

const (
	headerSize  = 48
	modeClient  = 3
	modeServer  = 4
	leapNone    = 0
	leapUnknown = 3 // the server is not synchronized
	ownStratum  = 2
)

// Correct answers as a synchronized server without keys does: also to an authenticated request, whose client then gets no MAC.
func Correct(request []byte, now time.Time) []byte {
	return header(request, leapNone, ownStratum, "TEST", now)
}

// Silent never answers, as if packets were lost: the port is open.
func Silent([]byte, time.Time) []byte { return nil }

// Unsynchronized answers that the server has no time.
func Unsynchronized(request []byte, now time.Time) []byte {
	return header(request, leapUnknown, 16, "INIT", now)
}

// WrongMAC answers an authenticated request under the same key ID with a MAC that no key makes.
func WrongMAC(request []byte, now time.Time) []byte {
	answer := Correct(request, now)
	const keyIDSize = 4
	if len(request) <= headerSize+keyIDSize {
		return answer
	}
	answer = append(answer, request[headerSize:]...)
	rand.Read(answer[headerSize+keyIDSize:]) // never returns an error
	return answer
}

// KissOfDeath refuses service with a code of RFC 5905 section 7.4: DENY, RATE or RSTR.
func KissOfDeath(code string) Reply {
	return func(request []byte, now time.Time) []byte { return header(request, leapUnknown, 0, code, now) }
}

// Off answers with a time that is off.
func Off(by time.Duration) Reply {
	return func(request []byte, now time.Time) []byte { return Correct(request, now.Add(by)) }
}

// header is a reply without authentication. code is the reference ID.
func header(request []byte, leap, stratum byte, code string, now time.Time) []byte {
	const precision = 0xec // 2^-20 s
	const millisecond = 65 // in 1/65536 s
	version := request[0] >> 3 & 7
	p := []byte{leap<<6 | version<<3 | modeServer, stratum, request[2], precision}
	p = binary.BigEndian.AppendUint32(p, millisecond) // root delay
	p = binary.BigEndian.AppendUint32(p, millisecond) // root dispersion
	p = append(p, code[:4]...)
	p = appendTime(p, now.Add(-time.Second)) // when its clock was set
	p = append(p, request[40:48]...)         // the client's time, which proves that the reply is to this request
	p = appendTime(p, now)                   // received
	return appendTime(p, now)                // sent
}

// appendTime appends seconds since 1900 with a fraction of 32 bits (RFC 5905 section 6).
func appendTime(p []byte, at time.Time) []byte {
	const from1900to1970 = 2208988800
	p = binary.BigEndian.AppendUint32(p, uint32(at.Unix()+from1900to1970)) //nolint:gosec // eras wrap around
	return binary.BigEndian.AppendUint32(p, uint32(uint64(at.Nanosecond())<<32/1e9))
}
