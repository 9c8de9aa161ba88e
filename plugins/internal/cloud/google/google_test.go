package google

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/plugins/internal/cloud/cloudtest"
)

func TestMain(m *testing.M) { os.Exit(cloudtest.WithProxy(m)) }

func TestTokenOfMachineWithoutProxy(t *testing.T) {
	t.Parallel()
	cloudtest.NoProxy(t, func(metadata string) error {
		_, err := Service{Endpoint: "https://storage.googleapis.com", Metadata: metadata}.tokenOfMachine(t.Context())
		return err
	})
}

// TestTokenOfMachine: the metadata server is recognized by its header, and its answers are small.
func TestTokenOfMachine(t *testing.T) {
	t.Parallel()
	var authorization string
	service := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorization = r.Header.Get("Authorization")
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(service.Close)
	config := Config{Endpoint: service.URL, TLS: cloud.TLS{
		CA: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: service.Certificate().Raw})),
	}}
	const token = `{"access_token": "c4n4ry", "expires_in": 3599, "token_type": "Bearer"}`
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		code    pluginv1.Code // 0: no error
		text    string
	}{
		"token": {func(w http.ResponseWriter, r *http.Request) {
			assert.Equal(t, "Google", r.Header.Get("Metadata-Flavor"))
			assert.Equal(t, "/computeMetadata/v1/instance/service-accounts/default/token", r.URL.Path)
			w.Header().Set("Metadata-Flavor", "Google")
			_, _ = io.WriteString(w, token)
		}, 0, ""},
		"other service": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, token) }, pluginv1.CodePrecondition, "not that of Google"},
		"large": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Metadata-Flavor", "Google")
			_, _ = io.WriteString(w, token+strings.Repeat(" ", 64<<10))
		}, pluginv1.CodePrecondition, "too much"},
		"no account": {http.NotFound, pluginv1.CodePrecondition, "404"},
		"redirect":   {http.RedirectHandler("/next", http.StatusFound).ServeHTTP, pluginv1.CodePrecondition, "302"},
		"throttled":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }, pluginv1.CodeRetry, "429"},
	} {
		t.Run(name, func(t *testing.T) {
			metadata := httptest.NewServer(test.handler)
			t.Cleanup(metadata.Close)
			err := Service{Metadata: metadata.URL}.Exchange(t.Context(), config, cloud.Message{Method: http.MethodGet, URL: "/"})
			if test.code == 0 {
				require.NoError(t, err)
				assert.Equal(t, "Bearer c4n4ry", authorization)
				return
			}
			e := pluginv1.AsError(err)
			assert.Equal(t, test.code, e.Code)
			assert.Contains(t, e.Message, test.text)
			assert.NotContains(t, e.Message, "c4n4ry")
			assert.Empty(t, e.Facts, "nothing was asked of the source")
		})
	}
	metadata := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(metadata.Close)
	err := Service{Metadata: metadata.URL, SpreadUntil: time.Now().Add(time.Hour)}.Exchange(t.Context(), config, cloud.Message{Method: http.MethodGet, URL: "/"})
	assert.Equal(t, pluginv1.CodeRetry, pluginv1.AsError(err).Code, "a new service account")
}

// keyFile is a key file of a service account, changed by edits.
func keyFile(t testing.TB, edits map[string]string) v1alpha1.Secret {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	file := map[string]string{
		"type": "service_account", "client_email": "a", "token_uri": "https://a.example/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	}
	for name, value := range edits {
		file[name] = value
	}
	data, err := json.Marshal(file)
	require.NoError(t, err)
	return v1alpha1.NewSecret(data)
}

// TestViolations: what cannot be a service account is refused before a request, and not quoted.
func TestViolations(t *testing.T) {
	t.Parallel()
	for _, edits := range []map[string]string{
		{"type": "authorized_user"},
		{"client_email": ""},
		{"token_uri": "http://c4n4ry/token"},
		{"private_key": "c4n4ry"},
		{"private_key": "-----BEGIN PRIVATE KEY-----\nYzRuNHJ5\n-----END PRIVATE KEY-----\n"},
	} {
		file := keyFile(t, edits)
		all := Config{ServiceAccountKey: &file}.Violations()
		require.Len(t, all, 1, "%v", edits)
		assert.Equal(t, "spec.providerConfig.serviceAccountKey", all[0].Field)
		assert.NotContains(t, all[0].Message+all[0].Hint, "c4n4ry")
	}
	file := keyFile(t, nil)
	assert.Empty(t, Config{ServiceAccountKey: &file, Endpoint: "https://a.example:8443"}.Violations())
	assert.Len(t, Config{Endpoint: "https://a.example"}.Violations(), 1, "the token of the machine is for Google alone")
	assert.Empty(t, Config{Endpoint: "https://storage-a.p.googleapis.com"}.Violations())
	for _, endpoint := range []string{"http://a.example", "https://a.example/", "https://me@a.example", "https://a.example?b", "a.example"} {
		assert.NotEmpty(t, Config{Endpoint: endpoint, ServiceAccountKey: &file}.Violations(), endpoint)
	}
}

// FuzzAccount: no key file makes the plugin panic.
func FuzzAccount(f *testing.F) {
	f.Add([]byte(`{"type": "service_account", "client_email": "a", "token_uri": "https://a", "private_key": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"}`))
	f.Add(keyFile(f, nil).Reveal())
	f.Fuzz(func(t *testing.T, file []byte) {
		a, err := parseAccount(v1alpha1.NewSecret(file))
		if err == nil {
			require.NotNil(t, a.private)
		}
	})
}

// TestServers: the token of the machine is for Google alone, by whatever trick of a URL another server is named.
func TestServers(t *testing.T) {
	t.Parallel()
	cloudtest.Tricks(t, "storage.googleapis.com", func(server string) bool { return len(Config{Endpoint: server}.Violations()) > 0 })
}
