package directory

import (
	"errors"
	"fmt"
	"sync"
)

// limits bound what a controller sends as the answer to one request.
type limits struct{ bytes, elements int }

const (
	// maxDepth is how many elements are within each other: a value of an attribute has five around it.
	maxDepth = 8

	constructed, highTag, longLength, sequence = 0x20, 0x1f, 0x80, 0x30 // BER, ITU-T X.690
)

// unauthenticated is enough for a controller's own attributes and for a bind. To decode it takes 1 KiB of memory for each element, and for
// each byte as much as controls nest.
func unauthenticated() limits { return limits{bytes: 16 << 10, elements: 1 << 10} }

// authenticated is enough for several accounts that have as many services as an account can have.
func authenticated() limits { return limits{bytes: 1 << 20, elements: 16 << 10} }

// guard follows the LDAP messages of a connection as their bytes arrive, before they are decoded, and refuses what exceeds the limits.
type guard struct {
	mutex        sync.Mutex
	limits, left limits

	head []byte // of an element, incomplete
	skip int    // bytes of a primitive element
	at   int    // in the message
	ends []int  // of the elements around
}

// newGuard returns a guard of a connection that is not authenticated.
func newGuard() *guard { return &guard{limits: unauthenticated(), left: unauthenticated()} }

// trust permits more from the next request on.
func (g *guard) trust() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.limits = authenticated()
}

// begin permits the answer to another request.
func (g *guard) begin() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.left = g.limits
}

// check follows bytes that are not protected.
func (g *guard) check(p []byte) error {
	for len(p) > 0 {
		n, _, err := g.next(p)
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// next follows bytes up to the end of a message, and returns their number and whether it ends with them.
func (g *guard) next(p []byte) (n int, ended bool, err error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	for n < len(p) && !ended {
		step := min(g.skip, len(p)-n)
		if step == 0 {
			step = 1
			g.head = append(g.head, p[n])
			err = g.header()
		} else {
			g.skip -= step
		}
		n, g.at, g.left.bytes = n+step, g.at+step, g.left.bytes-step
		if err == nil && g.left.bytes < 0 {
			err = g.tooLong()
		}
		if err != nil {
			return n, false, err
		}
		ended = g.leave()
	}
	return n, ended, nil
}

func (g *guard) tooLong() error {
	return fmt.Errorf("the answer of the domain controller is too long: more than %d bytes or %d elements", g.limits.bytes, g.limits.elements)
}

// header enters an element when its head is complete. The last byte of it is not counted yet.
func (g *guard) header() error {
	if len(g.head) < 2 {
		return nil
	}
	tag, size, octets := g.head[0], int(g.head[1]), 0
	if size >= longLength {
		octets, size = size-longLength, 0
	}
	malformed := errors.New("the answer of the domain controller is no LDAP message")
	if octets > 4 || g.head[1] == longLength || tag&highTag == highTag || len(g.ends) == 0 && tag != sequence {
		return malformed
	}
	if len(g.head) < 2+octets {
		return nil
	}
	for _, b := range g.head[2:] {
		size = size<<8 | int(b)
	}
	end := g.at + 1 + size
	g.head = g.head[:0]
	switch g.left.elements--; {
	case g.left.elements < 0 || size > g.left.bytes:
		return g.tooLong()
	case len(g.ends) > 0 && end > g.ends[len(g.ends)-1]:
		return malformed
	case tag&constructed == 0:
		g.skip = size
	case len(g.ends) == maxDepth:
		return errors.New("the answer of the domain controller is nested too deep")
	default:
		g.ends = append(g.ends, end)
	}
	return nil
}

// leave leaves the elements that end here, and reports whether the message is one of them.
func (g *guard) leave() bool {
	if g.skip > 0 || len(g.head) > 0 {
		return false
	}
	inside := len(g.ends)
	for len(g.ends) > 0 && g.at == g.ends[len(g.ends)-1] {
		g.ends = g.ends[:len(g.ends)-1]
	}
	if inside == 0 || len(g.ends) > 0 {
		return false
	}
	g.at = 0
	return true
}
