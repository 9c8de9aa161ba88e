package pluginv1

import (
	"fmt"
	"sync/atomic"
)

// PeerError says that the process that listens on a plugin's socket belongs to another user than this one. Nothing was
// sent to it.
type PeerError struct{ UID, Want int }

// Error names both users.
func (e *PeerError) Error() string {
	return fmt.Sprintf("the socket of the plugin is served by a process of user %d, and only one of user %d is trusted", e.UID, e.Want)
}

// peer remembers that a connection was refused: gRPC passes the reason on as text alone.
type peer struct{ refused atomic.Pointer[PeerError] }

// reason is why the connection was refused, else err.
func (p *peer) reason(err error) error {
	if refused := p.refused.Load(); err != nil && refused != nil {
		return refused
	}
	return err
}
