package main

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/plugins/internal/cloud/google"
	"github.com/machineadm/machineadm/sdk"
)

// TestStore: one request writes the object, with the end of its expiry, and two delete it and its report, which may be absent.
func TestStore(t *testing.T) {
	t.Parallel()
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		_, _ = io.WriteString(w, `{"access_token": "`+canary+`"}`)
	}))
	t.Cleanup(metadata.Close)
	requests, body := []string{}, ""
	service := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		requests, body = append(requests, r.Method+" "+r.RequestURI), string(data)
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(service.Close)
	config, err := json.Marshal(map[string]any{"ca": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: service.Certificate().Raw}))})
	require.NoError(t, err)
	s := sdk.NewSource(source(google.Service{Endpoint: service.URL, Metadata: metadata.URL, SpreadUntil: time.Now().Add(time.Hour)}), runtime.GOOS)
	in := pluginv1.Storage{URIPrefix: "gs://machines/a b/", Access: sdk.AccessRole, ProviderConfig: config, Target: target.Target{OS: runtime.GOOS}}
	stored, err := s.Store(t.Context(), pluginv1.StoreRequest{Storage: in, Name: "n", Data: []byte("stream"), Expiry: time.Hour, Report: true})
	require.NoError(t, err)
	assert.JSONEq(t, string(config), string(stored.ProviderConfig))
	assert.Equal(t, pluginv1.Stored{URI: "gs://machines/a b/n", ReportURI: "gs://machines/a b/n.report.json", ProviderConfig: stored.ProviderConfig}, stored)
	assert.Contains(t, body, `{"name":"a b/n","contentType":"application/yaml","customTime":"`+time.Now().Add(time.Hour).UTC().Format("2006-01-02T"))
	assert.Contains(t, body, "\r\n\r\nstream\r\n")
	require.NoError(t, s.Remove(t.Context(), pluginv1.RemoveRequest{Storage: in, Name: "n"}))
	assert.Equal(t, []string{
		"POST /upload/storage/v1/b/machines/o?uploadType=multipart",
		"DELETE /storage/v1/b/machines/o/a%20b%2Fn", "DELETE /storage/v1/b/machines/o/a%20b%2Fn.report.json",
	}, requests)

	in.Access = sdk.AccessPresigned
	_, err = s.Store(t.Context(), pluginv1.StoreRequest{Storage: in, ValidateOnly: true})
	assert.Equal(t, "access", pluginv1.AsError(err).Violations[0].Field)
}
