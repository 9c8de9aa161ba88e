package timeservers

import (
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRespond(t *testing.T) {
	t.Parallel()
	mac := append([]byte{0, 0, 0, 7}, make([]byte, 20)...)
	for name, c := range map[string]struct {
		reply Reply
		mac   []byte
		first byte // leap, version and mode
		want  byte // stratum
		code  string
		off   time.Duration
		size  int
	}{
		"correct":         {Correct, nil, 0x24, 2, "TEST", 0, 48},
		"no MAC":          {Correct, mac, 0x24, 2, "TEST", 0, 48},
		"wrong MAC":       {WrongMAC, mac, 0x24, 2, "TEST", 0, 72},
		"unsynchronized":  {Unsynchronized, nil, 0xe4, 16, "INIT", 0, 48},
		"kiss of death":   {KissOfDeath("DENY"), nil, 0xe4, 0, "DENY", 0, 48},
		"an hour in time": {Off(time.Hour), nil, 0x24, 2, "TEST", time.Hour, 48},
		"years late":      {Off(-20 * 365 * 24 * time.Hour), nil, 0x24, 2, "TEST", -20 * 365 * 24 * time.Hour, 48},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, c.reply)
			request := append(make([]byte, headerSize), c.mac...)
			request[0] = 4<<3 | modeClient
			copy(request[40:], "ourtime.")
			_, err := conn.Write(request)
			require.NoError(t, err)
			got := make([]byte, 1500)
			n, err := conn.Read(got)
			require.NoError(t, err)
			require.Equal(t, c.size, n)
			require.Equal(t, []byte{c.first, c.want}, got[:2])
			require.Equal(t, c.code, string(got[12:16]))
			require.Equal(t, "ourtime.", string(got[24:32]))
			const from1900 = 2208988800
			sent := time.Unix(int64(binary.BigEndian.Uint32(got[40:]))-from1900, 0)
			require.WithinDuration(t, time.Now().Add(c.off), sent, 10*time.Second)
			if n > headerSize {
				require.Equal(t, c.mac[:4], got[48:52])
				require.NotEqual(t, c.mac[4:], got[52:n])
			}
		})
	}
}

func TestNoReply(t *testing.T) {
	t.Parallel()
	request := make([]byte, headerSize)
	request[0] = 4<<3 | modeClient
	for name, c := range map[string]struct {
		reply   Reply
		request []byte
	}{
		"silent":    {Silent, request},
		"too short": {Correct, request[:47]},
		"no client": {Correct, make([]byte, headerSize)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := make(chan bool, 2)
			conn := dial(t, func(request []byte, now time.Time) []byte {
				if len(request) > headerSize { // the next one
					return Correct(request, now)
				}
				seen <- true
				return c.reply(request, now)
			})
			_, err := conn.Write(c.request)
			require.NoError(t, err)
			_, err = conn.Write(append(request[:headerSize:headerSize], make([]byte, 24)...))
			require.NoError(t, err)
			got := make([]byte, 1500)
			_, err = conn.Read(got) // the second request's reply is the first
			require.NoError(t, err)
			require.Len(t, seen, map[bool]int{true: 1}[name == "silent"])
		})
	}
}

func dial(t *testing.T, reply Reply) net.Conn {
	t.Helper()
	server, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp4", "127.0.0.1:0")
	require.NoError(t, err)
	Respond(t, server, reply)
	conn, err := new(net.Dialer).DialContext(t.Context(), "udp4", server.LocalAddr().String())
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return conn
}
