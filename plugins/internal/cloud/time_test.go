package cloud

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/sdk"
)

// piped is a client whose server is a function at the other end of a pipe, in the clock of a synctest bubble.
func piped(serve func(net.Conn)) Client {
	return Client{Digest: true, dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer func() { _ = theirs.Close() }()
			if _, err := http.ReadRequest(bufio.NewReader(theirs)); err == nil {
				serve(theirs)
			}
		}()
		return ours, nil
	}}
}

// drip sends bytes with a pause before each, until the client leaves.
func drip(conn net.Conn, head string, pauses ...time.Duration) {
	_, err := io.WriteString(conn, head)
	for i := 0; err == nil; i++ {
		time.Sleep(pauses[min(i, len(pauses)-1)])
		_, err = io.WriteString(conn, "x")
	}
}

const endless = "HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"

// TestStall: 30 s without a byte end a request; slow bytes end with the deadline of the call.
func TestStall(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		head   string
		pauses []time.Duration
		want   time.Duration
		text   string
	}{
		"no answer":       {"", []time.Duration{time.Hour}, 30 * time.Second, "no answer in time"},
		"no body":         {endless, []time.Duration{time.Hour}, 30 * time.Second, "ended before the object was complete"},
		"half a body":     {endless, []time.Duration{20 * time.Second, 29 * time.Second, time.Hour}, 79 * time.Second, "ended before the object was complete"},
		"a byte a second": {endless, []time.Duration{time.Second}, 10 * time.Minute, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				_, err := get(ctx, t, piped(func(conn net.Conn) { drip(conn, test.head, test.pauses...) }), "http://a.example")
				assert.Equal(t, test.want, time.Since(began))
				time.Sleep(2 * time.Hour) // the server ends
				if test.text == "" {
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					return
				}
				refused(t, err, pluginv1.CodeRetry, test.text)
			})
		})
	}
}

// TestAway: a server that comes up is found within as long again as it was away, at most 5 s. One that is away until the end is a Retry
// after the time that the host permits.
func TestAway(t *testing.T) {
	t.Parallel()
	for _, away := range []time.Duration{0, 100 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second, 20 * time.Second, time.Hour} {
		t.Run(away.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				c := piped(func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntext") })
				answered := c.dial
				c.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					if time.Since(began) < away {
						return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
					}
					return answered(ctx, network, address)
				}
				data, err := fetched(t, c)
				late := time.Since(began) - away
				if away > 30*time.Second {
					refused(t, err, pluginv1.CodeRetry, "a.example:80 cannot be reached: connection refused")
					assert.InDelta(t, 30, time.Since(began).Seconds(), 6)
					return
				}
				require.NoError(t, err)
				assert.Equal(t, "text", data)
				assert.LessOrEqual(t, late, min(away, 5*time.Second)) // and one try, which takes no time here
				t.Logf("found %s after it came up", late)
			})
		})
	}
}

// fetched fetches an object by a source of the SDK.
func fetched(t *testing.T, c Client) (string, error) {
	t.Helper()
	s := sdk.NewSource(sdk.Source{Name: "test", OS: []string{"linux"}, Fetch: func(ctx context.Context, l sdk.Location) (sdk.Object, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.URI, nil)
		require.NoError(t, err)
		answer, err := c.Do(r) //nolint:bodyclose // the SDK does
		if err != nil {
			return sdk.Object{}, err
		}
		return sdk.Object{Body: answer.Body}, nil
	}}, "linux")
	doc, err := json.Marshal(map[string]any{
		"apiVersion": "machineadm.cluster.x-k8s.io/v1alpha1", "kind": "RemoteConfig", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"provider": "test", "uri": "http://a.example", "sha256": fmt.Sprintf("%064d", 0)},
	})
	require.NoError(t, err)
	var data []byte
	err = s.Fetch(t.Context(), pluginv1.FetchRequest{
		Document: doc, Target: target.Target{OS: "linux"}, MaxBytes: 16 << 20, RetryFor: 30 * time.Second,
	}, func(part pluginv1.Chunk) error {
		data = append(data, part.Data...)
		return nil
	})
	return string(data), err
}
