package install

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestStall has a server that stops in the middle of a file.
func TestStall(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = w.Write([]byte("{"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	s, err := parse(1, server.URL, newClient())
	require.NoError(t, err)
	s.stall = 2 * time.Minute // for the answer and its first byte, of a busy machine
	body, err := s.open(t.Context(), "file")
	require.NoError(t, err)
	s.stall = 500 * time.Millisecond // from the first byte on
	began := time.Now()
	text, err := io.ReadAll(body)
	failed := new(Error)
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, server.URL+"/file: no data for 500ms", failed.Problem)
	assert.Less(t, time.Since(began), time.Minute, "each read limits the next one")
	assert.True(t, failed.temporary)
	assert.Equal(t, "{", string(text))
	require.NoError(t, body.Close())
}

func TestNames(t *testing.T) {
	t.Parallel()
	for location, want := range map[string]string{
		"https://example.com/v1/manifest.json":       "https://example.com/v1/x",
		"https://example.com/v1":                     "https://example.com/v1/x",
		"https://example.com":                        "https://example.com/x",
		"https://u:p@example.com/a%20b/?sig=1":       "https://example.com/a%20b/x",
		"http://[::1]:8080/v1/manifest.json?sig=a#b": "http://[::1]:8080/v1/x",
		"manifest.json":                              "x",
		"dir":                                        "dir/x",
		"/srv/v1/manifest.json":                      "/srv/v1/x",
		"/srv/v1/":                                   "/srv/v1/x",
	} {
		s, err := parse(1, location, nil)
		require.NoError(t, err, location)
		assert.Equal(t, want, s.name("x"), location)
	}
	for location, want := range map[string]string{
		"ftp://me:s3cret@example.com:21/v1?sig=s3cret": "location 2 of the release, at ftp://example.com:21, is neither a path nor a URL of http or https",
		"me:s3cret@https://example.com":                "location 2 of the release is neither a path nor a URL of http or https",
		"https:///s3cret":                              "location 2 of the release is neither a path nor a URL of http or https",
		"http://me:s3cret@[::1/v1":                     "location 2 of the release is neither a path nor a URL of http or https",
		"https://me:s3/cret@example.com/v1":            "location 2 of the release is neither a path nor a URL of http or https",
		"file:///srv":                                  "location 2 of the release is neither a path nor a URL of http or https",
	} {
		_, err := parse(2, location, nil)
		require.EqualError(t, err, want, location)
	}
}

// TestNoReferer: the query of a location can hold a token, and is not for the server that a mirror redirects to.
func TestNoReferer(t *testing.T) {
	t.Parallel()
	var seen http.Header
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header.Clone() }))
	t.Cleanup(other.Close)
	mirror := httptest.NewServer(http.RedirectHandler(other.URL+"/file", http.StatusFound))
	t.Cleanup(mirror.Close)
	s, err := parse(1, mirror.URL+"/?sig=c4n4ry", newClient())
	require.NoError(t, err)
	body, err := s.open(t.Context(), "file")
	require.NoError(t, err)
	require.NoError(t, body.Close())
	require.NotNil(t, seen)
	for name, values := range seen {
		assert.NotContains(t, values[0], "c4n4ry", name)
	}
}
