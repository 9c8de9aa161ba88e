//go:build !linux

package nodes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"testing"

	"github.com/machineadm/machineadm/internal/require"
)

func prerequisites(t testing.TB, _ Options) {
	t.Helper()
	require.Tier(t, require.System)
	require.Root(t)
}

func newNode(testing.TB, Options) (*Node, func() error, error) { return nil, nil, unsupported() }

func (n *Network) assemble(t testing.TB) error {
	t.Helper()
	require.Root(t)
	n.inst = instance{}
	return unsupported()
}

func (*Network) listenPacket(context.Context, member, uint16) (net.PacketConn, error) {
	return nil, unsupported()
}

func (*Network) openCapture() (*capture, error) { return nil, unsupported() }

type capture struct{}

func (*capture) stop() ([]byte, error) { return nil, unsupported() }

// BuildCache is possible on Linux alone.
func BuildCache(context.Context, Options, func(format string, args ...any)) error {
	return unsupported()
}

func unsupported() error {
	return fmt.Errorf("nodes need Linux, this is %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
