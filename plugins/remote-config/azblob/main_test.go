package main

import (
	"encoding/json"
	"encoding/pem"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/plugins/internal/cloud/azure"
	"github.com/machineadm/machineadm/plugins/internal/cloud/cloudtest"
	"github.com/machineadm/machineadm/sdk"
)

var update = flag.Bool("update", false, "renew the golden files")

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
		return sdk.NewSource(source(azure.Tokens{}), runtime.GOOS).Fetch(t.Context(), r, nil)
	})
}

// TestSharedKey: the text that is signed is the one of Azure's documentation, and the version is in the request.
func TestSharedKey(t *testing.T) {
	t.Parallel()
	text, err := toSign("acct", cloud.Message{
		Method: http.MethodPut, URL: "https://acct.blob.core.windows.net/a/b%20c?versionid=2&timeout=1", Body: []byte("text"),
		Header: map[string]string{"x-ms-version": "2023-11-03", "x-ms-date": "now", "If-Match": "etag", "Content-Type": "application/json"},
	})
	require.NoError(t, err)
	assert.Equal(t, "PUT\n\n\n4\n\napplication/json\n\n\netag\n\n\n\nx-ms-date:now\nx-ms-version:2023-11-03\n/acct/a/b%20c\ntimeout:1\nversionid:2", text)
	service := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, url.Values{"versionid": {"2026-11-23T10:00:00.0000000Z"}, "sig": {"a+b"}}, r.URL.Query())
		w.Header().Set("X-Ms-Version-Id", "v")
		_, _ = io.WriteString(w, "text")
	}))
	t.Cleanup(service.Close)
	var revision string
	require.NoError(t, sdk.NewSource(source(azure.Tokens{}), runtime.GOOS).Fetch(t.Context(), request(t, map[string]any{
		"provider": "azblob", "uri": service.URL + "/a/b", "providerConfig": map[string]any{
			"versionId": "2026-11-23T10:00:00.0000000Z", "sas": map[string]any{"value": "?sig=a%2Bb"},
			"ca": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: service.Certificate().Raw})),
		},
	}), func(c pluginv1.Chunk) error { revision += c.Revision; return nil }))
	assert.Equal(t, "v", revision)
}

// FuzzViolations: no location and no signature make the plugin panic, or are quoted.
func FuzzViolations(f *testing.F) {
	f.Add("https://a.blob.core.windows.net/a/c4n4ry?c4n4ry", "c4n4ry")
	f.Add("https://a/b%2fc", "?sig=c4n4ry%")
	f.Fuzz(func(t *testing.T, uri, sas string) {
		config, err := json.Marshal(map[string]any{"sas": map[string]string{"value": sas}})
		require.NoError(t, err)
		for _, v := range validate(sdk.Location{URI: uri, Field: "spec.uri", ProviderConfig: config}) {
			require.NotContains(t, v.Message+v.Hint, "c4n4ry")
		}
	})
}

// TestServers: the token of the machine is for Azure alone, by whatever trick of a URL another server is named.
func TestServers(t *testing.T) {
	t.Parallel()
	for _, identity := range []string{"{}", `{"managedIdentity": "a"}`} {
		cloudtest.Tricks(t, "a.blob.core.windows.net", func(server string) bool {
			return len(validate(sdk.Location{Field: "spec.uri", URI: server + "/container/blob", ProviderConfig: json.RawMessage(identity)})) > 0
		})
	}
}
