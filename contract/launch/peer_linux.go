package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// options check every connection to a plugin before anything is sent on it.
func (p *peer) options() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithTransportCredentials(sameUser{insecure.NewCredentials(), p})}
}

// sameUser refuses a connection whose other end belongs to another user.
type sameUser struct {
	credentials.TransportCredentials
	peer *peer
}

// ClientHandshake implements credentials.TransportCredentials.
func (c sameUser) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	uid, err := listener(conn)
	if err != nil {
		return nil, nil, fmt.Errorf("find out who listens on the plugin's socket: %w", err)
	}
	if want := os.Geteuid(); uid != want {
		refused := &PeerError{UID: uid, Want: want}
		c.peer.refused.Store(refused)
		return nil, nil, refused
	}
	return c.TransportCredentials.ClientHandshake(ctx, authority, conn)
}

// Clone implements credentials.TransportCredentials.
func (c sameUser) Clone() credentials.TransportCredentials {
	return sameUser{c.TransportCredentials.Clone(), c.peer}
}

// listener returns the user of the process that called listen(2) on the other end (SO_PEERCRED, unix(7)).
func listener(conn net.Conn) (uid int, err error) {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return 0, errors.New("the connection is not a socket")
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *syscall.Ucred
	controlErr := raw.Control(func(fd uintptr) {
		cred, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED) //nolint:gosec // a descriptor fits an int
	})
	if err = errors.Join(controlErr, err); err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
