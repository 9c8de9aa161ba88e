package azure

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/plugins/internal/cloud/cloudtest"
)

// TestTokenOfMachine: the metadata service gives a token of the identity that the document names, and its errors are classified.
func TestTokenOfMachine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		code    pluginv1.Code // 0: no error
		text    string
	}{
		"token": {func(w http.ResponseWriter, r *http.Request) {
			assert.Equal(t, "true", r.Header.Get("Metadata"))
			assert.Equal(t, "/metadata/identity/oauth2/token", r.URL.Path)
			assert.Equal(t, url.Values{"api-version": {"2018-02-01"}, "resource": {"https://vault.azure.net"}, "client_id": {"c1"}}, r.URL.Query())
			_, _ = io.WriteString(w, `{"access_token": "c4n4ry", "token_type": "Bearer"}`)
		}, 0, ""},
		"large": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "{}"+strings.Repeat(" ", 64<<10))
		}, pluginv1.CodePrecondition, "too much"},
		"no identity":   {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "c4n4ry", http.StatusBadRequest) }, pluginv1.CodePrecondition, "400"},
		"no right":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, pluginv1.CodePrecondition, "403"},
		"redirect":      {http.RedirectHandler("/next", http.StatusFound).ServeHTTP, pluginv1.CodePrecondition, "302"},
		"throttled":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }, pluginv1.CodeRetry, "429"},
		"being updated": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }, pluginv1.CodeRetry, "410"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			metadata := httptest.NewServer(test.handler)
			t.Cleanup(metadata.Close)
			token, err := Tokens{Resource: "https://vault.azure.net", Metadata: metadata.URL}.Token(t.Context(), Identity{ManagedIdentity: "c1"}, cloud.Client{})
			if test.code == 0 {
				require.NoError(t, err)
				assert.Equal(t, "c4n4ry", token)
				return
			}
			e := pluginv1.AsError(err)
			assert.Equal(t, test.code, e.Code)
			assert.Contains(t, e.Message, test.text)
			assert.NotContains(t, e.Message, "c4n4ry")
			assert.Empty(t, e.Facts, "nothing was asked of the source")
		})
	}
}

func TestMain(m *testing.M) { os.Exit(cloudtest.WithProxy(m)) }

func TestTokenOfMachineWithoutProxy(t *testing.T) {
	t.Parallel()
	cloudtest.NoProxy(t, func(metadata string) error {
		_, err := Tokens{Resource: "https://vault.azure.net", Metadata: metadata}.Token(t.Context(), Identity{}, cloud.Client{})
		return err
	})
}

func TestViolations(t *testing.T) {
	t.Parallel()
	assert.Empty(t, Identity{}.Violations())
	assert.Empty(t, Identity{ManagedIdentity: "66666666-7777-8888-9999-000000000000"}.Violations())
	assert.Len(t, Identity{ManagedIdentity: "c4n4ry/", ClientSecret: &ClientSecret{TenantID: "..", Authority: "http://c4n4ry"}}.Violations(), 7)
	assert.Empty(t, Identity{ClientSecret: &ClientSecret{TenantID: "a.example", ClientID: "c1", Secret: v1alpha1.NewSecret([]byte("s"))}}.Violations())
}
