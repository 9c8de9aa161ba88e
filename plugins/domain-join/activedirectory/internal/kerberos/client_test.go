package kerberos

import (
	"context"
	"encoding/asn1"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// serve answers one connection and returns the port.
func serve(t *testing.T, answer func(conn net.Conn)) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		head := make([]byte, 4)
		if _, err := io.ReadFull(conn, head); assert.NoError(t, err) {
			request := make([]byte, binary.BigEndian.Uint32(head))
			_, err = io.ReadFull(conn, request)
			assert.NoError(t, err)
			assert.Equal(t, "request", string(request))
		}
		answer(conn)
		assert.NoError(t, conn.Close())
	}()
	t.Cleanup(func() {
		assert.NoError(t, listener.Close())
		<-done
	})
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return port
}

func TestSend(t *testing.T) {
	t.Parallel()
	c := &Client{Host: "127.0.0.1"}
	whole := append([]byte{0, 0, 0x12, 0x34}, make([]byte, 0x1234)...)
	for name, tt := range map[string]struct {
		answer []byte
		err    string
		size   int
	}{
		"a reply":         {answer: whole, size: 0x1234},
		"an empty reply":  {answer: []byte{0, 0, 0, 0}},
		"closed":          {err: "EOF"},
		"half a length":   {answer: whole[:2], err: "unexpected EOF"},
		"half a reply":    {answer: whole[:99], err: "unexpected EOF"},
		"too long":        {answer: []byte{0, 4, 0, 1}, err: "has 262145 bytes"},
		"text, no length": {answer: []byte("HTTP/1.1 400"), err: "has 1213486160 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			port := serve(t, func(conn net.Conn) {
				_, err := conn.Write(tt.answer)
				assert.NoError(t, err)
			})
			reply, err := c.send(t.Context(), port, []byte("request"))
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Len(t, reply, tt.size)
		})
	}
}

// TestSilentServer: the context ends an exchange.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	port := serve(t, func(conn net.Conn) {
		cancel()
		n, err := conn.Read(make([]byte, 1)) // until the client closes
		assert.Zero(t, n)
		assert.Error(t, err)
	})
	_, err := (&Client{Host: "127.0.0.1"}).send(ctx, port, []byte("request"))
	require.Error(t, err)
	_, err = (&Client{Host: "127.0.0.1"}).send(ctx, port, nil)
	require.ErrorContains(t, err, "canceled")
}

// status is the KERB-ERROR-DATA of [MS-KILE] section 2.2.1.
func status(t testing.TB, kind int, value []byte) []byte {
	t.Helper()
	data, err := asn1.Marshal(struct {
		Kind  int    `asn1:"explicit,tag:1"`
		Value []byte `asn1:"explicit,tag:2"`
	}{kind, value})
	require.NoError(t, err)
	return data
}

func TestRefusal(t *testing.T) {
	t.Parallel()
	list := func(entries ...[]byte) []byte {
		data, err := asn1.Marshal(asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: slices.Concat(entries...)})
		require.NoError(t, err)
		return data
	}
	locked := []byte{0x34, 2, 0, 0xc0, 0, 0, 0, 0, 1, 0, 0, 0}
	for name, tt := range map[string]struct {
		data []byte
		want Error
		text string
	}{
		"no data":  {nil, Error{Code: 18}, "Kerberos error 18"},
		"a status": {status(t, 3, locked), Error{18, 0xc0000234}, "Kerberos error 18, status 0xc0000234"},
		"of Samba": {
			list(status(t, 19, nil), status(t, 3, locked)), Error{18, 0xc0000234}, "Kerberos error 18, status 0xc0000234",
		},
		"an empty list":  {list(), Error{Code: 18}, "Kerberos error 18"},
		"another kind":   {status(t, 1, locked), Error{Code: 18}, "Kerberos error 18"},
		"a short status": {status(t, 3, locked[:3]), Error{Code: 18}, "Kerberos error 18"},
		"cut":            {status(t, 3, locked)[:8], Error{Code: 18}, "Kerberos error 18"},
		"no ASN.1":       {[]byte("\xff\xff\xff\xff"), Error{Code: 18}, "Kerberos error 18"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := refusal(messages.KRBError{ErrorCode: 18, EData: tt.data})
			require.Equal(t, tt.want, *err)
			require.EqualError(t, err, tt.text)
		})
	}
}
