package fetch

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/testenv/objectstores"
)

// TestServers: what a server does wrong ends with a clear error, or with the next try.
func TestServers(t *testing.T) {
	t.Parallel()
	for _, get := range []string{"curl", "wget", "wget=busybox"} {
		t.Run(get, func(t *testing.T) {
			t.Parallel()
			for name, c := range faults() {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					url := serve(t, c.handler())
					b := newBench(t, url)
					b.path = toolbox(t, get, "sha256sum")
					if c.error != "" {
						b.refused(b.run(), fmt.Sprintf(c.error, url+"/"+File(version, "linux", runtime.GOARCH)), "nothing installed")
						// Another mirror has the file.
						b.head.URLs = append(b.head.URLs, serve(t, good))
					}
					b.ran(b.run())
				})
			}
		})
	}
}

// fault is a server with a defect.
type fault struct {
	handler func() http.HandlerFunc
	error   string // with the URL; empty if another try succeeds
}

func faults() map[string]fault {
	simple := func(h http.HandlerFunc) func() http.HandlerFunc { return func() http.HandlerFunc { return h } }
	return map[string]fault{
		"wrong bytes": {simple(func(w http.ResponseWriter, _ *http.Request) {
			data := content()
			data[len(data)-1]++
			_, _ = w.Write(data)
		}), "%s has another SHA-256"},
		"empty": {simple(func(http.ResponseWriter, *http.Request) {}), "%s has another SHA-256"},
		"truncated": {simple(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(content())))
			_, _ = w.Write(content()[:1000])
		}), "%s "}, // busybox does not notice the missing bytes
		"absent":    {simple(http.NotFound), "cannot download %s"},
		"forbidden": {simple(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }), "cannot download %s"},
		"redirect in a circle": {simple(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		}), "cannot download %s"},
		"redirect": {simple(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery == "" {
				http.Redirect(w, r, r.URL.Path+"?elsewhere", http.StatusFound)
				return
			}
			good(w, r)
		}), ""},
		"error, then good": {func() http.HandlerFunc {
			var requests atomic.Int32
			return func(w http.ResponseWriter, r *http.Request) {
				if requests.Add(1) == 1 {
					w.WriteHeader(http.StatusInternalServerError)
					return
				}
				good(w, r)
			}
		}, ""},
	}
}

// TestHangingServer: a server that never answers, or stops in the middle, costs one time limit; then the next mirror serves.
func TestHangingServer(t *testing.T) {
	t.Parallel()
	for _, get := range []string{"curl", "wget", "wget=busybox"} {
		for name, sent := range map[string]int{"no answer": 0, "half": 1000} {
			t.Run(get+" "+name, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, serve(t, hang(sent)), serve(t, good))
				b.path, b.head.Limit = toolbox(t, get, "sha256sum"), "3"
				got := b.run()
				assert.Contains(t, got.errOut, "cannot download "+b.head.URLs[0])
				b.ran(got)
			})
		}
	}
}

// hang sends a part of the program and waits for the client to leave.
func hang(sent int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if sent > 0 {
			w.Header().Set("Content-Length", strconv.Itoa(len(content())))
			_, _ = w.Write(content()[:sent])
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}
}

// TestEndlessFile: a server cannot fill the disk.
func TestEndlessFile(t *testing.T) {
	t.Parallel()
	b := newBench(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, zeros{})
	}))
	b.head.Waits = " "
	began := time.Now()
	b.refused(b.run(), "cannot download "+b.head.URLs[0])
	t.Logf("ended after %s", time.Since(began))
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestObjectStores downloads from buckets that everyone can read.
func TestObjectStores(t *testing.T) {
	t.Parallel()
	key := version + "/" + File(version, "linux", runtime.GOARCH)
	s3, gcs := objectstores.StartS3(t, nil), objectstores.StartGCS(t, nil)
	s3.Put(t, key, content())
	gcs.Put(t, key, content())
	closed := newBench(t, s3.URL(version))
	closed.refused(closed.run(), "cannot download "+s3.URL(key))
	s3.AllowReading(t)
	for name, server := range map[string]objectstores.Server{"s3": s3.Server, "gcs": gcs.Server} {
		for _, get := range []string{"curl", "wget", "wget=busybox"} {
			b := newBench(t, server.URL(version))
			b.path = toolbox(t, get, "sha256sum")
			b.ran(b.run())
			require.NoError(t, os.RemoveAll(b.head.To), name)
			b.head.URLs[0] += "/absent"
			b.refused(b.run(), "cannot download "+b.head.URLs[0])
		}
	}
}
