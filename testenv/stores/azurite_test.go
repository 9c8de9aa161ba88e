package stores

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/tools"
)

const (
	account = "machines"
	// accountKey is base64.
	accountKey = canary + canary + canary + canary + canary + canary + canary + canary
	tenant     = "11111111-2222-3333-4444-555555555555"
	clientID   = "66666666-7777-8888-9999-000000000000"
)

// azurite is a running Azurite with one container.
type azurite struct {
	t         *testing.T
	authority authority.Authority
	client    *http.Client
	at        string // URL of the container
}

// azuriteProgram returns the main file of Azurite, which needs Node.js 20.
func azuriteProgram(t *testing.T) string {
	t.Helper()
	needs.Tier(t, needs.System)
	return filepath.Join(tools.NodeModules(t, "azurite"), "azurite/dist/src/blob/main.js")
}

// startAzurite starts Azurite, which checks signatures, and of tokens everything but the signature.
func startAzurite(t *testing.T, program string) azurite {
	t.Helper()
	a, dir := authority.New(t), t.TempDir()
	certificate, key := a.Issue(t, "localhost", func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} })
	files := []string{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
	require.NoError(t, errors.Join(os.WriteFile(files[0], certificate, 0o600), os.WriteFile(files[1], key, 0o600)))
	c := exec.CommandContext(context.WithoutCancel(t.Context()), "node", program, "--blobPort", "0", "--inMemoryPersistence", "--disableTelemetry",
		"--oauth", "basic", "--cert", files[0], "--key", files[1])
	c.Dir, c.Env = dir, append(os.Environ(), "AZURITE_ACCOUNTS="+account+":"+accountKey)
	said, err := c.StdoutPipe()
	require.NoError(t, err)
	c.Stderr = c.Stdout
	require.NoError(t, c.Start())
	at, ended := make(chan string, 1), make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(said); lines.Scan(); { // to the end, so that it can write
			if _, found, ok := strings.Cut(lines.Text(), " successfully listens on "); ok {
				at <- found
			}
		}
		_ = c.Wait() // killed by the cleanup
		close(ended)
	}()
	t.Cleanup(func() { _ = c.Process.Kill(); <-ended })
	var address string
	select {
	case address = <-at:
	case <-ended:
		t.Fatal("Azurite has ended")
	case <-time.After(needs.Timeout(time.Minute)):
		t.Fatal("Azurite does not listen")
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.Certificate)
	s := azurite{
		t, a, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}},
		address + "/" + account + "/nodes",
	}
	require.Eventually(t, func() bool {
		answer, err := s.do(http.MethodPut, "?restype=container", nil)
		if err == nil {
			_ = answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusCreated
	}, needs.Timeout(time.Minute), 50*time.Millisecond)
	return s
}

// do sends a request with a token that Azurite accepts.
func (s azurite) do(method, path string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.at+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+entraToken("https://storage.azure.com"))
	r.Header.Set("x-ms-version", "2023-11-03")
	r.Header.Set("x-ms-blob-type", "BlockBlob")
	return s.client.Do(r)
}

// put writes a blob, and returns its ETag.
func (s azurite) put(name, text string) string {
	s.t.Helper()
	answer, err := s.do(http.MethodPut, "/"+name, []byte(text))
	require.NoError(s.t, err)
	defer func() { _ = answer.Body.Close() }()
	require.Equal(s.t, http.StatusCreated, answer.StatusCode)
	return answer.Header.Get("ETag")
}

// get returns a blob.
func (s azurite) get(name string) string {
	s.t.Helper()
	answer, err := s.do(http.MethodGet, "/"+name, nil)
	require.NoError(s.t, err)
	defer func() { _ = answer.Body.Close() }()
	var text bytes.Buffer
	_, err = text.ReadFrom(answer.Body)
	require.NoError(s.t, err)
	return text.String()
}

// entraToken is a token with the claims of Microsoft Entra ID. Its signature is not one.
func entraToken(audience string) string {
	part := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return base64.RawURLEncoding.EncodeToString(data)
	}
	now := time.Now()
	return part(map[string]string{"alg": "RS256", "typ": "JWT"}) + "." + part(map[string]any{
		"aud": audience, "iss": "https://sts.windows.net/" + tenant + "/", "sub": canary,
		"iat": now.Add(-time.Minute).Unix(), "nbf": now.Add(-time.Minute).Unix(), "exp": now.Add(time.Hour).Unix(),
	}) + "." + base64.RawURLEncoding.EncodeToString([]byte(canary))
}

// entra is a stand-in for the token server of Microsoft Entra ID, for one application and its secret.
func entra(audience string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want := url.Values{
			"grant_type": {"client_credentials"}, "client_id": {clientID}, "client_secret": {canary + "~secret&"}, "scope": {audience + "/.default"},
		}
		if r.Method != http.MethodPost || r.URL.Path != "/"+tenant+"/oauth2/v2.0/token" || r.ParseForm() != nil || r.PostForm.Encode() != want.Encode() {
			answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client", "error_description": canary})
			return
		}
		answer(w, http.StatusOK, map[string]any{"token_type": "Bearer", "expires_in": 3599, "access_token": entraToken(audience)})
	})
}

// application is the clientSecret of a providerConfig.
func application(authority, secretText string) map[string]any {
	return map[string]any{"tenantID": tenant, "clientID": clientID, "secret": secret(secretText), "authority": authority}
}
