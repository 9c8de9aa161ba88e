package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk"
)

// TestStore: a Secret is applied and deleted with the token of the storage, and the machines get another one.
func TestStore(t *testing.T) {
	t.Parallel()
	requests, body := []string{}, ""
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		requests, body = append(requests, r.Method+" "+r.RequestURI+" "+r.Header.Get("Authorization")), string(data)
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	secret := func(text string) map[string]any { return map[string]any{"value": text} }
	config, err := json.Marshal(map[string]any{"token": secret("manager"), "ca": ca(s), "read": map[string]any{"token": secret("machines")}})
	require.NoError(t, err)
	server := strings.Replace(s.URL, "https", "kube", 1)
	p := sdk.NewSource(source(), runtime.GOOS)
	in := pluginv1.Storage{URIPrefix: server + "/machines/of-", Access: sdk.AccessRole, ProviderConfig: config, Target: here()}
	stored, err := p.Store(t.Context(), pluginv1.StoreRequest{Storage: in, Name: "n", Data: []byte("stream"), Report: true})
	require.NoError(t, err)
	assert.Equal(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"of-n"},"data":{"value":"c3RyZWFt"}}`, body)
	want, err := json.Marshal(map[string]any{"token": secret("machines"), "ca": ca(s)})
	require.NoError(t, err)
	assert.JSONEq(t, string(want), string(stored.ProviderConfig))
	assert.Equal(t, server+"/machines/of-n/value", stored.URI)
	assert.Equal(t, server+"/machines/of-n.report.json/report.json", stored.ReportURI)
	require.NoError(t, p.Remove(t.Context(), pluginv1.RemoveRequest{Storage: in, Name: "n"}))
	const at, with = " /api/v1/namespaces/machines/", " Bearer manager"
	assert.Equal(t, []string{
		"PATCH" + at + "secrets/of-n?force=true&fieldManager=machineadm" + with,
		"DELETE" + at + "secrets/of-n" + with, "DELETE" + at + "configmaps/of-n.report.json" + with,
	}, requests)

	in.ProviderConfig = []byte(`{"token":{"value":"manager"}}`)
	_, err = p.Store(t.Context(), pluginv1.StoreRequest{Storage: in, ValidateOnly: true})
	assert.Equal(t, "providerConfig.read", pluginv1.AsError(err).Violations[0].Field)
	in.Access = sdk.AccessPresigned
	_, err = p.Store(t.Context(), pluginv1.StoreRequest{Storage: in, ValidateOnly: true})
	assert.Equal(t, "access", pluginv1.AsError(err).Violations[0].Field)
}
