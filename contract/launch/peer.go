package launch

import (
	"fmt"
	"sync/atomic"
)

// PeerError is a plugin's socket whose listening process belongs to another user. Nothing was sent to it.
type PeerError struct{ UID, Want int }

// Error names both users.
func (e *PeerError) Error() string {
	return fmt.Sprintf("the socket of the plugin is served by a process of user %d, and only one of user %d is trusted", e.UID, e.Want)
}

// peer keeps the reason for a refused connection: gRPC passes it on as text alone.
type peer struct{ refused atomic.Pointer[PeerError] }

// reason returns the PeerError of a refused connection, else err.
func (p *peer) reason(err error) error {
	if refused := p.refused.Load(); err != nil && refused != nil {
		return refused
	}
	return err
}
