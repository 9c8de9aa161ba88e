package member

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestNoRedirect: a server that is not authenticated sends the request of root nowhere else.
func TestNoRedirect(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		_, _ = w.Write([]byte(`{"gitVersion": "v1.34.0"}`))
	}))
	t.Cleanup(other.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewTLSServer(http.RedirectHandler(other.URL+"/version", status))
		t.Cleanup(server.Close)
		_, ok := ServerVersion(t.Context(), strings.TrimPrefix(server.URL, "https://"))
		assert.False(t, ok, status)
	}
	assert.Zero(t, requests.Load())
}
