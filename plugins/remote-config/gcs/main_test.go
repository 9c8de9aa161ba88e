package main

import (
	"bytes"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/internal/cloud/cloudtest"
	"github.com/machineadm/machineadm/plugins/internal/cloud/google"
	"github.com/machineadm/machineadm/sdk"
)

var update = flag.Bool("update", false, "renew the golden files")

const canary = cloudtest.Canary

// request is one for the object of a spec.
func request(t testing.TB, spec any) pluginv1.FetchRequest {
	t.Helper()
	return pluginv1.FetchRequest{Document: cloudtest.Document(t, v1alpha1.KindRemoteConfig, spec), Target: target.Target{OS: runtime.GOOS}, MaxBytes: 16 << 20}
}

// TestViolations: all violations of a document at once, none with a value. Each case of the golden file is a spec.
func TestViolations(t *testing.T) {
	t.Parallel()
	cloudtest.Violations(t, *update, v1alpha1.KindRemoteConfig, func(doc []byte) error {
		r := pluginv1.FetchRequest{Document: doc, Target: target.Target{OS: runtime.GOOS}, ValidateOnly: true}
		return sdk.NewSource(source(google.Service{}), runtime.GOOS).Fetch(t.Context(), r, nil)
	})
}

// TestBody: an object that is cut at any tenth is tried again, and one of 17 MiB is refused; the generation is in the request.
func TestBody(t *testing.T) {
	t.Parallel()
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<10)
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		_, _ = io.WriteString(w, `{"access_token": "`+canary+`"}`)
	}))
	t.Cleanup(metadata.Close)
	service := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/storage/v1/b/machines/o/a%2Fb%20c", r.URL.EscapedPath())
		assert.Equal(t, "Bearer "+canary, r.Header.Get("Authorization"))
		assert.Equal(t, "media", r.URL.Query().Get("alt"))
		var part int
		_, err := fmt.Sscan(r.URL.Query().Get("generation"), &part)
		assert.NoError(t, err)
		if part == 17 {
			w.Header().Set("Content-Length", fmt.Sprint(17<<20))
			for range 17 << 6 {
				if _, err := w.Write(data); err != nil {
					return
				}
			}
			return
		}
		w.Header().Set("X-Goog-Generation", fmt.Sprint(part))
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data[:len(data)*part/10]) // the server closes a connection whose answer is too short
	}))
	t.Cleanup(service.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: service.Certificate().Raw}))
	s := sdk.NewSource(source(google.Service{Endpoint: service.URL, Metadata: metadata.URL}), runtime.GOOS)
	for _, generation := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17} {
		var got []byte
		var revision string
		err := s.Fetch(t.Context(), request(t, map[string]any{
			"provider": "gcs", "uri": "gs://machines/a/b c", "providerConfig": map[string]any{"generation": generation, "ca": ca},
		}), func(c pluginv1.Chunk) error {
			got, revision = append(got, c.Data...), revision+c.Revision
			return nil
		})
		switch generation {
		case 10:
			require.NoError(t, err)
			assert.Equal(t, data, got)
			assert.Equal(t, "10", revision)
		case 17:
			assert.True(t, pluginv1.AsError(err).Final)
			assert.Contains(t, pluginv1.AsError(err).Message, "larger than")
		default:
			assert.Equal(t, pluginv1.CodeRetry, pluginv1.AsError(err).Code, "%d: %v", generation, err)
		}
	}
}

// FuzzParse: what is accepted is what is written, and a path of a request that it makes has no other segments.
func FuzzParse(f *testing.F) {
	f.Add("gs://machines/nodes/worker 1+2#3%25?.yaml")
	f.Add("gs://machines/..")
	f.Add("gs://ma?nes/a")
	f.Fuzz(func(t *testing.T, uri string) {
		bucket, object, ok := parse(uri)
		if !ok {
			return
		}
		require.Equal(t, uri, "gs://"+bucket+"/"+object)
		r, err := http.NewRequest(http.MethodGet, "https://a"+path(bucket, object)+"?b", nil)
		require.NoError(t, err)
		require.Equal(t, "b", r.URL.RawQuery)
		require.Equal(t, "/storage/v1/b/"+bucket+"/o/"+object, r.URL.Path)
		require.Equal(t, 6, strings.Count(r.URL.EscapedPath(), "/"))
	})
}
