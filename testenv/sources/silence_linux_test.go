package sources

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/testenv/authority"
)

// TestSilence: a server that accepts connections and is silent, and one that does not even accept them, end a try. The plugin may be
// asked again. internal/httpclient shows after which time.
func TestSilence(t *testing.T) {
	t.Parallel()
	plugin, a := httpPlugin(t), authority.New(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() }) // a listener without data
	for name, at := range map[string]string{"handshake": silent.Addr().String(), "dial": full(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // the kernel gives up after 127 s
			defer cancel()
			r, err := Do(ctx, Call{Plugin: plugin, Spec: spec(a, "https://"+at+"/", nil)})
			require.NoError(t, err)
			require.NotNil(t, r.Error)
			assert.Equal(t, pluginv1.CodeRetry, r.Error.Code)
			assert.Equal(t, at+" cannot be reached: no answer in time", r.Error.Message)
		})
	}
}

// full returns the address of a listener whose queue is full: the kernel drops what asks for a connection.
func full(t *testing.T) string {
	t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(socket) }) // a listener without data
	require.NoError(t, unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, unix.Listen(socket, 0))
	name, err := unix.Getsockname(socket)
	require.NoError(t, err)
	inet, ok := name.(*unix.SockaddrInet4)
	require.True(t, ok)
	at := fmt.Sprintf("127.0.0.1:%d", inet.Port)
	for range 10 {
		conn, err := net.DialTimeout("tcp", at, time.Second)
		if err != nil {
			return at
		}
		t.Cleanup(func() { _ = conn.Close() }) // nothing was sent
	}
	t.Fatal("the queue of the listener does not fill")
	return ""
}
