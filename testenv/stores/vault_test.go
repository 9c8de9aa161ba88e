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
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/tools"
)

// The programs of testenv/tools that have Vault's transit engine and AppRole.
const (
	transitAlone = "transit" // behind the requests that the tests make
	wholeVault   = "vault"
)

// vaultServer is a Vault, or what serves its transit engine as a Vault does.
type vaultServer struct {
	t           *testing.T
	client      *http.Client
	address, ca string
	root        string // token
}

// startVault starts one of the two programs and waits until it is unsealed. It is killed at the end of the test.
func startVault(t *testing.T, tool string) vaultServer {
	t.Helper()
	program := tools.For(t, tool)
	a, dir := authority.New(t), t.TempDir()
	certificate, key := a.Issue(t, "localhost", func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} })
	files := []string{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
	require.NoError(t, errors.Join(os.WriteFile(files[0], certificate, 0o600), os.WriteFile(files[1], key, 0o600)))
	c := exec.CommandContext(context.WithoutCancel(t.Context()), program, files...)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	var said bytes.Buffer
	c.Stderr = &said
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		t.Log(said.String())
		assert.NotContains(t, said.String(), canary)
	})
	lines := bufio.NewScanner(out)
	var words []string
	for len(words) < 2 && lines.Scan() {
		words = append(words, lines.Text())
	}
	require.Len(t, words, 2, "%s", &said)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.Certificate)
	return vaultServer{
		t, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}},
		words[0], string(a.Certificate), words[1],
	}
}

// call makes a call of the API with the root token, and returns its data.
func (v vaultServer) call(method, path string, in any) map[string]any {
	v.t.Helper()
	data, err := json.Marshal(in)
	require.NoError(v.t, err)
	r, err := http.NewRequestWithContext(v.t.Context(), method, "https://"+v.address+"/v1/"+path, bytes.NewReader(data))
	require.NoError(v.t, err)
	r.Header.Set("X-Vault-Token", v.root)
	answer, err := v.client.Do(r)
	require.NoError(v.t, err)
	defer func() { _ = answer.Body.Close() }()
	require.Equal(v.t, 2, answer.StatusCode/100, "%s %s: %s", method, path, answer.Status)
	var out struct{ Data, Auth map[string]any }
	if answer.StatusCode == http.StatusOK {
		require.NoError(v.t, json.NewDecoder(answer.Body).Decode(&out))
	}
	if out.Auth != nil {
		return out.Auth
	}
	return out.Data
}

// policies are as in the README: of machines, and of users who encrypt.
var policies = map[string]string{
	"decrypt": `path "team/transit/decrypt/machines" { capabilities = ["update"] }`,
	"encrypt": `path "team/transit/datakey/plaintext/machines" { capabilities = ["update"] }`,
}

// TestTransit gets passphrases from the engine of a real Vault, by a token and by an AppRole that have the policies of the README alone.
func TestTransit(t *testing.T) {
	t.Parallel()
	passphrasesOf(t, startVault(t, transitAlone), "400")
}

// TestVault does the same with the whole of Vault, which takes minutes to compile: make campaign runs it.
func TestVault(t *testing.T) {
	t.Parallel()
	passphrasesOf(t, startVault(t, wholeVault), "500") // later versions answer 400
}

// passphrasesOf fails unless the server answers a login with a secret ID that is used up with the status.
func passphrasesOf(t *testing.T, v vaultServer, usedUp string) {
	t.Helper()
	v.call(http.MethodPost, "sys/mounts/team/transit", map[string]any{"type": "transit"})
	v.call(http.MethodPost, "team/transit/keys/machines", map[string]any{})
	v.call(http.MethodPost, "team/transit/keys/other", map[string]any{})
	v.call(http.MethodPost, "sys/auth/approle", map[string]any{"type": "approle"})
	tokens := map[string]any{}
	for name, policy := range policies {
		v.call(http.MethodPost, "sys/policies/acl/"+name, map[string]any{"policy": policy})
		tokens[name] = v.call(http.MethodPost, "auth/token/create", map[string]any{"policies": []string{name}, "no_default_policy": true})["client_token"]
	}
	v.call(http.MethodPost, "auth/approle/role/machines", map[string]any{"token_policies": []string{"decrypt"}, "token_ttl": "1m", "secret_id_num_uses": 1})
	role := v.call(http.MethodGet, "auth/approle/role/machines/role-id", nil)["role_id"]
	secretID := canary + "-secret-id"
	v.call(http.MethodPost, "auth/approle/role/machines/custom-secret-id", map[string]any{"secret_id": secretID})

	p := start(t, "plugins/encrypted-config/vault")
	config := map[string]any{"ca": v.ca}
	decrypting := with(config, "token", map[string]any{"value": tokens["decrypt"]})
	encrypting := with(config, "token", map[string]any{"value": tokens["encrypt"]})
	key := v.address + "/team/transit/machines"
	made, e := p.newPassphrase(key, encrypting)
	require.Nil(t, e)
	assert.Len(t, made.Passphrase, 32)
	assert.True(t, strings.HasPrefix(made.URI, "vault://vault:v1:") && strings.HasSuffix(made.URI, "@"+key), made.URI)
	got, e := p.passphrase(made.URI, decrypting)
	require.Nil(t, e)
	assert.Equal(t, made.Passphrase, got)

	login := with(config, "approle", map[string]any{"roleID": role, "secretID": secret(secretID)})
	v.call(http.MethodPost, "team/transit/keys/machines/rotate", map[string]any{})
	got, e = p.passphrase(made.URI, login)
	require.Nil(t, e)
	assert.Equal(t, made.Passphrase, got)
	_, e = p.passphrase(made.URI, login) // the secret ID was for one login
	require.NotNil(t, e)
	assert.Contains(t, e.Message, usedUp)

	again, e := p.newPassphrase(key, encrypting)
	require.Nil(t, e)
	assert.Contains(t, again.URI, "vault:v2:")
	assert.NotEqual(t, made.Passphrase, again.Passphrase)
	byHand := v.call(http.MethodPost, "team/transit/encrypt/machines", map[string]any{"plaintext": base64.StdEncoding.EncodeToString([]byte("a passphrase of ours"))})
	got, e = p.passphrase(fmt.Sprintf("vault://%s@%s", byHand["ciphertext"], key), decrypting)
	require.Nil(t, e)
	assert.Equal(t, "a passphrase of ours", string(got))

	_, e = p.passphrase(made.URI, with(config, "token", secret(canary)))
	refused(t, e, "403")
	_, e = p.passphrase(made.URI, encrypting)
	refused(t, e, "403")
	_, e = p.newPassphrase(key, decrypting)
	refused(t, e, "403")
	_, e = p.passphrase(strings.Replace(made.URI, "@"+key, "@"+v.address+"/team/transit/other", 1), decrypting)
	refused(t, e, "403")
	_, e = p.passphrase(strings.Replace(made.URI, "vault:v1:", "vault:v1:AAAA", 1), decrypting)
	refused(t, e, "")
	_, e = p.passphrase(made.URI, with(decrypting, "ca", nil))
	refused(t, e, "")
	v.call(http.MethodPut, "sys/seal", nil)
	_, e = p.passphrase(made.URI, decrypting)
	require.NotNil(t, e)
	assert.Contains(t, e.Message, "503")
}
