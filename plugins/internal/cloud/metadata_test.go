package cloud

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// statuses are those by which a source answers that it has nothing, and 400, which means so at a token server.
var statuses = map[int]string{400: "", 401: "401", 403: "403", 404: "404", 410: "410"} //nolint:gochecknoglobals // a constant table

// TestOtherServers: what a metadata service or a token server answers is not the source's answer that it has nothing, except that a
// token server refuses the credentials.
func TestOtherServers(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	for code := range statuses {
		handler := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
		metadata := httptest.NewServer(http.HandlerFunc(handler))
		t.Cleanup(metadata.Close)
		var into any
		_, err := Metadata(t.Context(), metadata.URL, nil, &into, time.Time{})
		assert.Empty(t, refusal(t, err, pluginv1.CodePrecondition, http.StatusText(code)).Facts)
		assert.Equal(t, code, Status(err))
		_, err = Token(t.Context(), a.client(), a.serve(t, handler), url.Values{"a": {canary}})
		e := refusal(t, err, pluginv1.CodePrecondition, http.StatusText(code))
		if code <= 401 {
			assert.Equal(t, map[string]string{pluginv1.FactStatus: "401"}, e.Facts)
			continue
		}
		assert.Empty(t, e.Facts)
	}
}
