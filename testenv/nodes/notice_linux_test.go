package nodes

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAwaitReadyReadsOn: PID 1 of a node announces each daemon-reload, and blocks once the socket's queue is full.
func TestAwaitReadyReadsOn(t *testing.T) {
	t.Parallel()
	notices, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: "@" + t.Name()})
	require.NoError(t, err)
	up, ended := make(chan struct{}), make(chan struct{})
	go func() { awaitReady(notices, up); close(ended) }()
	init, err := net.Dial("unixgram", "@"+t.Name())
	require.NoError(t, err)
	require.NoError(t, init.SetWriteDeadline(time.Now().Add(20*time.Second)))
	for range 500 {
		for _, notice := range []string{"STATUS=starting", "RELOADING=1", "X_SYSTEMD=1\nREADY=1"} {
			_, err := init.Write([]byte(notice))
			require.NoError(t, err)
		}
	}
	<-up
	require.NoError(t, notices.Close())
	<-ended
	assert.NoError(t, init.Close())
}
