package objectstores

import (
	"context"
	"net/http"
	"net/url"
	"os/exec"
	"testing"

	"github.com/machineadm/machineadm/testenv/authority"
)

// GCS is a running fake-gcs-server. It checks no credentials: everyone can read and write its bucket.
type GCS struct{ Server }

// StartGCS starts fake-gcs-server, with TLS and a certificate of the authority unless that is nil.
func StartGCS(t testing.TB, ca *authority.Authority) *GCS {
	t.Helper()
	s := &GCS{newServer(t, host, ca)}
	arguments := []string{"-host", host, "-port", s.port, "-public-host", host + ":" + s.port, "-filesystem-root", t.TempDir(), "-log-level", "error"}
	if s.files != nil {
		arguments = append(arguments, "-cert-location", s.files[0], "-private-key-location", s.files[1])
	} else {
		arguments = append(arguments, "-scheme", "http")
	}
	start(t, exec.CommandContext(context.WithoutCancel(t.Context()), built(t, "fake-gcs-server"), arguments...), func() error {
		_, _, err := s.do(t.Context(), http.MethodPost, s.Endpoint+"/storage/v1/b?project=test", "application/json", []byte(`{"name": "`+s.Bucket+`"}`))
		return err
	})
	return s
}

// Put writes an object and returns its resource in JSON: etag and generation are of the new version.
func (s *GCS) Put(t testing.TB, key string, data []byte) []byte {
	t.Helper()
	to := s.Endpoint + "/upload/storage/v1/b/" + s.Bucket + "/o?uploadType=media&name=" + url.QueryEscape(key)
	_, resource, err := s.do(t.Context(), http.MethodPost, to, "application/octet-stream", data)
	check(t, err)
	return resource
}

// Get returns the newest version of an object.
func (s *GCS) Get(t testing.TB, key string) []byte {
	t.Helper()
	_, data, err := s.do(t.Context(), http.MethodGet, s.URL(key), "", nil)
	check(t, err)
	return data
}
