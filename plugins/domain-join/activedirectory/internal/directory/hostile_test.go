package directory

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"net"
	"net/http/httptest"
	"runtime"
	"slices"
	"testing"
	"time"

	ber "github.com/go-asn1-ber/asn1-ber"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	machine "github.com/machineadm/machineadm/internal/require"
)

// element is an element of BER with a length of four bytes.
func element(tag byte, content ...[]byte) []byte {
	data := bytes.Join(content, nil)
	return append(binary.BigEndian.AppendUint32([]byte{tag, 0x84}, uint32(len(data))), data...) //nolint:gosec // of the test
}

// entry is a result of the first search.
func entry(content ...[]byte) []byte {
	return element(0x30, []byte{2, 1, 1}, element(0x64, element(4), element(0x30, content...)))
}

// announced is the start of an element, without its content.
func announced(tag byte, length uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{tag, 0x84}, length)
}

// floods are answers without end: what the controller sends first, and then again and again.
func floods() map[string][2][]byte {
	nested := element(4, make([]byte, 4<<10))
	for range 900 {
		nested = element(0x30, nested)
	}
	return map[string][2][]byte{
		"entries":                {nil, entry(element(0x30, element(4, make([]byte, 1<<10)), element(0x31)))},
		"entries of nothing":     {nil, entry()},
		"references":             {nil, element(0x30, []byte{2, 1, 1}, element(0x73, element(4, make([]byte, 1<<10))))},
		"answers to no request":  {nil, element(0x30, []byte{2, 1, 0}, element(0x78, element(4, make([]byte, 1<<10))))},
		"a message of 2 GiB":     {slices.Concat(announced(0x30, 0x7fffffff), []byte{2, 1, 1}, announced(4, 0x7ffffff0)), make([]byte, 1<<16)},
		"a value of 16 MiB":      {slices.Concat(announced(0x30, 0xffffff), []byte{2, 1, 1}, announced(4, 0xfffff0)), make([]byte, 1<<16)},
		"a message without end":  {[]byte{0x30, 0x80}, bytes.Repeat([]byte{4, 0}, 1<<10)},
		"small values":           {nil, entry(bytes.Repeat([]byte{4, 0}, 1<<14))},
		"small values, in parts": {announced(0x30, 1<<24), bytes.Repeat([]byte{5, 0}, 1<<10)},
		"nested values":          {nil, entry(nested)},
		"no message":             {nil, bytes.Repeat([]byte("HTTP/1.1 400 "), 1<<10)},
	}
}

// flooding answers what it receives with a flood, until the other side closes.
func flooding(first, again []byte) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		go func() {
			conn, err := listener.Accept()
			_ = listener.Close()
			if err != nil {
				return
			}
			defer func() { _ = conn.Close() }()
			if _, err = conn.Read(make([]byte, 1<<10)); err == nil {
				_, err = conn.Write(first)
			}
			for err == nil {
				_, err = conn.Write(again)
			}
		}()
		return (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
	}
}

// TestMemoryBeforeAuthentication: a controller that is not authenticated costs little memory and no time, whatever it answers.
func TestMemoryBeforeAuthentication(t *testing.T) {
	const most = 16 << 20 // of 32 MiB, which a plugin has in all
	for _, start := range []bool{false, true} {
		for what, flood := range floods() {
			o := Options{Domain: "example.test", dial: flooding(flood[0], flood[1])}
			if start {
				what += ", before StartTLS"
				o.TLS = &TLS{Start: true}
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			s, err := connect(t.Context(), o, "dc.example.test")
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			require.Error(t, err, what)
			require.Nil(t, s)
			t.Logf("%s: %d KiB in all, %s: %.160v", what, (after.TotalAlloc-before.TotalAlloc)>>10, took.Round(time.Millisecond), err)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(most), what)
			assert.Less(t, took, machine.Timeout(time.Second), "%s: refused, and not waited for", what)
		}
	}
}

// TestEndOfContext: the end of the context ends a session whose controller neither reads nor answers.
func TestEndOfContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	began := time.Now()
	_, err := connect(ctx, Options{Domain: "example.test", dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe() // a write waits for its reader
		t.Cleanup(func() { assert.NoError(t, theirs.Close()) })
		go func() {
			_, err := theirs.Read(make([]byte, 1))
			assert.NoError(t, err)
			cancel()
		}()
		return pipe{ours}, nil
	}}, "dc.example.test")
	require.Error(t, err)
	assert.Less(t, time.Since(began), machine.Timeout(time.Second))
}

// pipe has an address of TCP.
type pipe struct{ net.Conn }

func (pipe) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 389} }

// TestStartTLS: the request and the handshake behind it, whose failure has its cause.
func TestStartTLS(t *testing.T) {
	t.Parallel()
	authority := httptest.NewTLSServer(nil)
	t.Cleanup(authority.Close)
	roots := x509.NewCertPool()
	roots.AddCert(authority.Certificate())
	for name, wrong := range map[string]bool{"example.com": false, "other.test": true} {
		ours, theirs := net.Pipe()
		go func() {
			request, err := ber.ReadPacket(theirs)
			if assert.NoError(t, err) && assert.Len(t, request.Children, 2) && assert.Len(t, request.Children[1].Children, 1) {
				assert.Equal(t, "1.3.6.1.4.1.1466.20037", request.Children[1].Children[0].Data.String())
			}
			_, err = theirs.Write(element(0x30, []byte{2, 1, 1}, element(0x78, []byte{10, 1, 0, 4, 0, 4, 0})))
			assert.NoError(t, err)
			_ = tls.Server(theirs, authority.TLS).HandshakeContext(t.Context()) // fails if the client refuses
			_ = theirs.Close()
		}()
		secure, err := protect(t.Context(), ours, true, &tls.Config{ServerName: name, RootCAs: roots, MinVersion: tls.VersionTLS12})
		if wrong {
			var mismatch x509.HostnameError
			require.ErrorAs(t, err, &mismatch)
		} else {
			require.NoError(t, err)
			assert.NotEmpty(t, binding(secure.ConnectionState()))
		}
		require.NoError(t, ours.Close())
	}
}

// FuzzGuard: the guard finds the same end and the same error in a stream however it is cut, and decodes what the decoder does.
func FuzzGuard(f *testing.F) {
	f.Add(message("bind"), 3)
	f.Add(entry(element(0x30, element(4, []byte("name")), element(0x31, element(4, []byte("value"))))), 1)
	f.Add([]byte{0x30, 0x80, 4, 0, 0, 0}, 1)
	f.Add([]byte{0x30, 0, 0x30, 0}, 5)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		size = min(max(size, 1), 1<<10)
		whole, parts := newGuard(), newGuard()
		n, ended, err := whole.next(data)
		at, partsEnded := 0, false
		var partsErr error
		for at < len(data) && !partsEnded && partsErr == nil {
			var m int
			m, partsEnded, partsErr = parts.next(data[at:min(len(data), at+size)])
			at += m
		}
		require.Equal(t, ended, partsEnded)
		require.Equal(t, n, at)
		require.Equal(t, err == nil, partsErr == nil)
		if ended {
			rest := bytes.NewReader(data)
			if _, err := ber.ReadPacket(rest); err == nil { // it refuses some values
				require.Equal(t, n, len(data)-rest.Len())
			}
		}
	})
}
