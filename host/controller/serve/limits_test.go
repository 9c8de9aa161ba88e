package serve

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pipes is a listener whose connections are in memory, so that they use the time of a synctest bubble.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error { close(p.closed); return nil }

func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial() net.Conn {
	near, far := net.Pipe()
	p.accepted <- far
	return near
}

// within runs a test with an endpoint in a bubble, whose time passes only while everything waits.
func within(t *testing.T, change func(*Options), test func(*testing.T, *endpoint, pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(t, change)
		p := pipes{make(chan net.Conn), make(chan struct{})}
		e.run(t.Context(), t, p)
		test(t, e, p)
	})
}

// tls completes a handshake.
func (e *endpoint) tls(t *testing.T, c net.Conn) *tls.Conn {
	t.Helper()
	config := e.config()
	config.ServerName = "127.0.0.1"
	s := tls.Client(c, config)
	require.NoError(t, s.Handshake())
	t.Cleanup(func() { _ = c.Close() })
	return s
}

// answered returns the status of the next answer, or 0 if the connection ends without one.
func answered(c net.Conn) int {
	a, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	defer func() { _ = a.Body.Close() }() // reads it
	return a.StatusCode
}

func posted(length string) string {
	return "POST /v1/report/ns/worker HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + tokenOf(1) + "\r\nMachineadm-Sequence: 7\r\n" + length + "\r\n\r\n"
}

// drip writes a byte of a text each second until it fails.
func drip(c net.Conn, text string) {
	for i := range text {
		if _, err := io.WriteString(c, text[i:i+1]); err != nil {
			return
		}
		time.Sleep(time.Second)
	}
}

// TestSlow: a client that is slow at any step is cut off at the limit of this step, to the second.
func TestSlow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plain, request string // at once
		slow           string // a byte each second
		status         int
		after          time.Duration
	}{
		"no handshake":      {after: 10 * time.Second},
		"half a handshake":  {plain: "\x16\x03\x01\x02\x00\x01", after: 10 * time.Second},
		"no request":        {request: " ", status: 400, after: 10 * time.Second},
		"slow headers":      {slow: "GET /v1/data/ns/worker HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X: y\r\n", 100), status: 400, after: 10 * time.Second},
		"no body":           {request: posted("Content-Length: 10"), status: 408, after: 30 * time.Second},
		"a slow body":       {request: posted("Content-Length: 100"), slow: strings.Repeat("x", 100), status: 408, after: 30 * time.Second},
		"slow chunks":       {request: posted("Transfer-Encoding: chunked"), slow: strings.Repeat("1\r\nx\r\n", 100), status: 408, after: 30 * time.Second},
		"a body in time":    {request: posted("Content-Length: 20"), slow: "{" + strings.Repeat(" ", 19), status: 204, after: 19 * time.Second},
		"an endless body":   {request: posted("Transfer-Encoding: chunked") + strings.Repeat("40000\r\n"+strings.Repeat("x", 0x40000)+"\r\n", 4), status: 413},
		"a slow body, GET":  {request: "GET /v1/data/ns/empty HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + tokenOf(1) + "\r\nContent-Length: 9\r\n\r\n", status: 200},
		"a body, no bearer": {request: "POST /v1/report/ns/worker HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", status: 401},
		"denied":            {request: strings.Replace(posted("Content-Length: 9"), "/ns/", "/other/", 1), status: 403},
		"expects 100":       {request: posted("Content-Length: 9\r\nExpect: 100-continue"), status: 100},
		"denied before 100": {request: strings.Replace(posted("Content-Length: 9\r\nExpect: 100-continue"), "/ns/", "/other/", 1), status: 403},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			within(t, nil, func(t *testing.T, e *endpoint, p pipes) {
				begin, plain := time.Now(), p.dial()
				conn := plain
				if c.request != "" || c.slow != "" {
					conn = e.tls(t, plain)
				}
				written := make(chan struct{})
				defer func() { _ = plain.Close(); <-written }()
				go func() {
					defer close(written)
					if _, err := io.WriteString(conn, c.plain+c.request); err == nil {
						drip(conn, c.slow)
					}
				}()
				assert.Equal(t, c.status, answered(conn))
				assert.Equal(t, c.after, time.Since(begin).Truncate(time.Second))
			})
		})
	}
}

// TestSlowReader: a client that does not take its answer is cut off, and the file that it had is closed.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "large"), make([]byte, 1<<20), 0o600))
	for _, path := range []string{"data/ns/worker", "release/large"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			within(t, func(o *Options) { o.Releases, o.Limits.Downloads = dir, 1 }, func(t *testing.T, e *endpoint, p pipes) {
				request := "GET /v1/" + path + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + tokenOf(1) + "\r\n\r\n"
				conn := e.tls(t, p.dial())
				_, err := io.WriteString(conn, request)
				require.NoError(t, err)
				synctest.Wait() // the server writes
				second := e.tls(t, p.dial())
				_, err = io.WriteString(second, request)
				require.NoError(t, err)
				assert.Equal(t, map[bool]int{true: 200, false: 429}[path == "data/ns/worker"], answered(second))
				time.Sleep(36 * time.Second) // and crypto/tls tries for 5 s to end its stream
				third := e.tls(t, p.dial())
				_, err = io.WriteString(third, request)
				require.NoError(t, err)
				assert.Equal(t, 200, answered(third))
				n, _ := io.Copy(io.Discard, conn)
				assert.Less(t, n, int64(64<<10), "the first was cut off")
			})
		})
	}
}

// TestBusy: a request beyond those that the backend works on waits, and gets 429 if the backend stays busy. A backend that does not return ends
// at its time limit.
func TestBusy(t *testing.T) {
	t.Parallel()
	within(t, func(o *Options) { o.Limits.Requests = 1 }, func(t *testing.T, e *endpoint, p pipes) {
		e.wait = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		get := func(name string) net.Conn {
			c := e.tls(t, p.dial())
			_, err := io.WriteString(c, "GET /v1/data/ns/"+name+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+tokenOf(1)+"\r\n\r\n")
			require.NoError(t, err)
			return c
		}
		begin := time.Now()
		first := get("waits")
		synctest.Wait()
		assert.Equal(t, 429, answered(get("worker")))
		assert.Equal(t, 5*time.Second, time.Since(begin))
		time.Sleep(time.Second)
		last := get("worker")
		assert.Equal(t, 503, answered(first))
		assert.Equal(t, 10*time.Second, time.Since(begin))
		assert.Equal(t, 200, answered(last), "it has waited for 4 s")
		assert.Equal(t, 10*time.Second, time.Since(begin))
		// A report whose body is slow does not keep the backend busy.
		slow := e.tls(t, p.dial())
		_, err := io.WriteString(slow, posted("Content-Length: 10"))
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, 200, answered(get("worker")))
	})
}

// TestWaitingClientLeaves: a request whose client has closed the connection does not wait on, and the backend does not see it.
func TestWaitingClientLeaves(t *testing.T) {
	t.Parallel()
	within(t, func(o *Options) { o.Limits.Requests, o.Limits.Connections, o.Limits.Wait = 1, 2, time.Hour }, func(t *testing.T, e *endpoint, p pipes) {
		e.wait = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		request := func(name string) *tls.Conn {
			c := e.tls(t, p.dial())
			_, err := io.WriteString(c, "GET /v1/data/ns/"+name+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+tokenOf(1)+"\r\n\r\n")
			require.NoError(t, err)
			synctest.Wait()
			return c
		}
		first, begin := request("waits"), time.Now()
		left := request("worker")
		require.NoError(t, left.NetConn().Close())
		synctest.Wait()
		third := request("worker") // there is room for its connection again
		assert.Equal(t, 503, answered(first))
		assert.Equal(t, 200, answered(third))
		assert.Equal(t, 10*time.Second, time.Since(begin))
		assert.Len(t, e.calls(), 2)
	})
}

// TestDenied: an address with many wrong bearers is not passed to the backend any more, others are, and it is served again later.
func TestDenied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(t, nil)
		get := func(client, bearer string) int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/data/ns/worker", nil)
			r.RemoteAddr = client
			r.Header.Set("Authorization", "Bearer "+bearer)
			w := httptest.NewRecorder()
			e.handler.ServeHTTP(w, r)
			return w.Code
		}
		codes := map[int]int{}
		for i := range 10_000 {
			codes[get("192.0.2.1:"+strconv.Itoa(i), tokenOf(2))]++
		}
		assert.Equal(t, map[int]int{403: 100, 429: 9900}, codes)
		assert.Len(t, e.calls(), 100)
		assert.Equal(t, 429, get("192.0.2.1:1", tokenOf(1)), "also with the right one")
		assert.Equal(t, 200, get("192.0.2.2:1", tokenOf(1)))
		assert.Equal(t, 429, get("[::ffff:192.0.2.1]:1", tokenOf(2)))
		time.Sleep(time.Second)
		clear(codes)
		for range 100 {
			codes[get("192.0.2.1:1", tokenOf(2))]++
		}
		assert.Equal(t, map[int]int{403: 10, 429: 90}, codes, "10 a second")
		for i := range 200 {
			get("[2001:db8::"+strconv.FormatInt(int64(i+1), 16)+"]:1", tokenOf(2))
		}
		assert.Equal(t, 429, get("[2001:db8::ffff:ffff:ffff:ffff]:1", tokenOf(1)), "one network")
		assert.Equal(t, 200, get("[2001:db8:0:1::1]:1", tokenOf(1)))
	})
}

// TestDenialsForget: the addresses that are counted are bounded, and a bucket that is full again is forgotten.
func TestDenialsForget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := DefaultLimits()
		limits.Addresses = 100
		d := &denials{limits: limits}
		address := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }
		for i := range 10_000 {
			d.add(address(i))
			require.LessOrEqual(t, len(d.recent)+len(d.older), 100)
		}
		for range 200 {
			d.add(address(1))
		}
		for i := range 60 { // not enough to forget it
			d.add(address(1000 + i))
		}
		assert.True(t, d.exceeded(address(1)))
		assert.False(t, d.exceeded(address(1000)))
		assert.NotContains(t, d.recent, address(1))
		for range 2 {
			time.Sleep(11 * time.Second)
			d.add(address(2000))
		}
		assert.Equal(t, 1, len(d.recent))
		assert.Nil(t, d.bucket(address(1)))
	})
}

// TestConnections: connections beyond the limits are closed, and there is room again when others end.
func TestConnections(t *testing.T) {
	t.Parallel()
	for limit, change := range map[string]func(*Limits){
		tooMany:        func(l *Limits) { l.Connections = 2 },
		tooManyAddress: func(l *Limits) { l.PerAddress = 2 },
	} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			e := start(t, func(o *Options) { change(&o.Limits) })
			first := e.dial(t)
			e.dial(t)
			_, err := tls.Dial("tcp", e.address, e.config())
			require.Error(t, err)
			assert.InDelta(t, 1, testutil.ToFloat64(e.handler.metrics.refused.WithLabelValues(limit)), 0)
			require.NoError(t, first.Close())
			require.Eventually(t, func() bool {
				c, err := tls.Dial("tcp", e.address, e.config())
				return err == nil && c.Close() == nil
			}, time.Minute, time.Millisecond, "the server notices that the first is closed")
		})
	}
}

func TestClientOf(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"192.0.2.1:1": "192.0.2.1", "[::ffff:192.0.2.1]:1": "192.0.2.1", "[2001:db8::1]:1": "2001:db8::", "[fe80::1%eth0]:1": "fe80::",
		"pipe": "invalid IP", "": "invalid IP",
	} {
		assert.Equal(t, want, clientOf(remote).String(), remote)
	}
}

// TestShutdown: when the server ends, a request in work is finished, new connections are refused, and after ten seconds the rest is cut.
func TestShutdown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		work, after time.Duration
		status      int
	}{
		"in time":  {work: 9 * time.Second, after: 9 * time.Second, status: 200},
		"too late": {work: 20 * time.Second, after: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := newEndpoint(t, func(o *Options) { o.Limits.Work = time.Hour })
				e.wait = func(ctx context.Context) error {
					select {
					case <-time.After(c.work):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				p := pipes{make(chan net.Conn), make(chan struct{})}
				ctx, stop := context.WithCancelCause(t.Context())
				ended := make(chan error)
				go func() { ended <- e.serve(ctx, p) }()
				conn := e.tls(t, p.dial())
				_, err := io.WriteString(conn, "GET /v1/data/ns/waits HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+tokenOf(1)+"\r\n\r\n")
				require.NoError(t, err)
				synctest.Wait()
				begin := time.Now()
				stop(errors.New("the test ends it"))
				assert.Equal(t, c.status, answered(conn))
				_, _ = io.Copy(io.Discard, conn) // the end of TLS
				require.NoError(t, <-ended)
				assert.Equal(t, c.after, time.Since(begin).Truncate(time.Second))
				<-p.closed
			})
		})
	}
}
