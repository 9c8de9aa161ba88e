package stores

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/testenv/authority"
)

// sharedAccess is a service SAS of the container with these permissions: Create a service SAS, version 2020-12-06 and later.
func sharedAccess(t *testing.T, permissions string) string {
	t.Helper()
	end, version := time.Now().Add(time.Hour).UTC().Format(time.RFC3339), "2022-11-02"
	text := strings.Join([]string{permissions, "", end, "/blob/" + account + "/nodes", "", "", "https", version, "c", "", "", "", "", "", "", ""}, "\n")
	key, err := base64.StdEncoding.DecodeString(accountKey)
	require.NoError(t, err)
	mac := hmac.New(sha256.New, key)
	_, err = mac.Write([]byte(text))
	require.NoError(t, err)
	return url.Values{
		"sp": {permissions}, "se": {end}, "spr": {"https"}, "sv": {version}, "sr": {"c"}, "sig": {base64.StdEncoding.EncodeToString(mac.Sum(nil))},
	}.Encode()
}

// TestAzureBlob fetches from Azurite, and keeps reports there, by each kind of credential.
//
//machineadm:core
func TestAzureBlob(t *testing.T) {
	program := azuriteProgram(t)
	t.Parallel()
	s := startAzurite(t, program)
	p := start(t, "plugins/remote-config/azblob")
	login := serve(t, s.authority, entra("https://storage.azure.com"))
	config := map[string]any{"ca": string(s.authority.Certificate)}
	const name = "a%20b/worker+1.yaml"
	etag := s.put(name, stream)
	s.put("15MiB", strings.Repeat("0123456789abcde\n", 15<<16))
	shared := map[string]any{"account": account, "key": secret(accountKey)}
	for kind, field := range map[string]any{
		"sharedKey": shared, "sas": secret(sharedAccess(t, "rcw")), "clientSecret": application(login, canary+"~secret&"),
	} {
		t.Run(kind, func(t *testing.T) {
			own := with(config, kind, field)
			o, e := p.fetch(s.at+"/"+name, own)
			require.Nil(t, e)
			assert.Equal(t, object{[]byte(stream), etag}, o)
			o, e = p.fetch(s.at+"/15MiB", own)
			require.Nil(t, e)
			assert.Len(t, o.data, 15<<20)
			_, e = p.fetch(s.at+"/absent", own) // for a minute, a blob may become visible
			require.NotNil(t, e)
			assert.Equal(t, pluginv1.CodeRetry, e.Code)
			assert.Contains(t, e.Message, "404")

			of := s.at + "/" + kind + "%20x"
			require.Nil(t, p.report(of, "", own, 2, `{"report": 2}`))
			assert.Equal(t, `{"report": 2}`, s.get(kind+"%20x.report.json"))
			require.Nil(t, p.report(of, "", own, 1, `{"report": 1}`))
			assert.Equal(t, `{"report": 2}`, s.get(kind+"%20x.report.json"))
			require.Nil(t, p.report(of, of+".report.json", own, 3, `{"report": 3}`))
			assert.Equal(t, `{"report": 3}`, s.get(kind+"%20x.report.json"))
			p.reportAll(s.at+"/all-"+kind, own, 8)
			assert.Equal(t, `{"report": 8}`, s.get("all-"+kind+".report.json"))
		})
	}
	wrong := base64.StdEncoding.EncodeToString([]byte(canary))
	e := p.report(s.at+"/"+name, "", with(config, "sharedKey", map[string]any{"account": account, "key": secret(wrong)}), 4, "{}")
	refused(t, e, "")
	assert.Contains(t, e.Message, "400") // Azure documents 403; Azurite takes the header for a broken token
	altered := strings.Replace(sharedAccess(t, "r"), "sp=r", "sp=rw", 1)
	refused(t, p.report(s.at+"/"+name, "", with(config, "sas", secret(altered)), 4, "{}"), "403")
	refused(t, p.report(s.at+"/"+name, "", with(config, "sas", secret(sharedAccess(t, "r"))), 4, "{}"), "403")
	_, e = p.fetch(s.at+"/"+name, with(config, "clientSecret", application(login, canary)))
	refused(t, e, "401")
	_, e = p.fetch(s.at+"/"+name, config)
	require.NotNil(t, e)
	assert.Equal(t, pluginv1.CodeInvalidConfig, e.Code, "the token of the machine is for Azure alone")
}

// TestAzureBlobStores: with a key of the account, a machine needs nothing but what the reference has, and its signatures are for one blob.
func TestAzureBlobStores(t *testing.T) {
	program := azuriteProgram(t)
	t.Parallel()
	s := startAzurite(t, program)
	p, web := start(t, "plugins/remote-config/azblob"), start(t, "plugins/remote-config/http")
	config := map[string]any{"ca": string(s.authority.Certificate), "sharedKey": map[string]any{"account": account, "key": secret(accountKey)}}
	at := storage(t, s.at+"/a%20b/", "presigned", config)
	kept := p.keeps(web, at)
	assert.Equal(t, "http", kept.Provider)
	assert.WithinDuration(t, time.Now().Add(time.Hour), kept.Expires, time.Minute)
	assert.NotContains(t, string(kept.ProviderConfig), canary)
	s.put("a%20b/"+stored, stream)
	s.put("a%20b/"+stored+"-other", stream)
	own := json.RawMessage(kept.ProviderConfig)
	_, e := web.fetch(kept.URI+"-other", own)
	refused(t, e, "403")
	refused(t, web.report(kept.URI, kept.URI, own, 1, "{}"), "403")
	_, e = web.fetch(kept.ReportURI, own)
	refused(t, e, "403")

	login := serve(t, s.authority, entra("https://storage.azure.com"))
	config = map[string]any{"ca": string(s.authority.Certificate), "clientSecret": application(login, canary+"~secret&")}
	at = storage(t, s.at+"/", "role", config)
	handed, e := p.store(at, stream)
	require.Nil(t, e)
	assert.Equal(t, pluginv1.Stored{URI: s.at + "/" + stored, ReportURI: s.at + "/" + stored + ".report.json", ProviderConfig: handed.ProviderConfig}, handed)
	assert.NotContains(t, string(handed.ProviderConfig), "clientSecret")
	assert.Equal(t, stream, s.get(stored))
	at.Access = "presigned"
	_, e = p.store(at, stream)
	require.NotNil(t, e)
	assert.Equal(t, "access", e.Violations[0].Field)
	_, e = p.store(storage(t, s.at+"-absent/", "role", config), stream)
	require.NotNil(t, e)
	assert.Contains(t, e.Message, "404")
}

// keyVault is a stand-in for Azure Key Vault with one version of one key: learn.microsoft.com/rest/api/keyvault, version 7.4.
func keyVault(t *testing.T) http.Handler {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	const version = "0123456789abcdef0123456789abcdef"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Alg, Value string }
		path, isUnwrap := strings.CutSuffix(r.URL.Path, "/unwrapkey")
		path, isWrap := strings.CutSuffix(path, "/wrapkey")
		if token := strings.Split(r.Header.Get("Authorization"), "."); token[0] != "Bearer "+strings.Split(entraToken(""), ".")[0] {
			refuse(w, r, http.StatusUnauthorized)
			return
		}
		if path != "/keys/machines/"+version && (path != "/keys/machines" || !isWrap) {
			refuse(w, r, http.StatusNotFound)
			return
		}
		if r.Method != http.MethodPost || r.URL.RawQuery != "api-version=7.4" || !decode(r, &in) || in.Alg != "RSA-OAEP-256" {
			refuse(w, r, http.StatusBadRequest)
			return
		}
		value, err := base64.RawURLEncoding.Strict().DecodeString(in.Value)
		switch {
		case err != nil:
		case isUnwrap:
			value, err = rsa.DecryptOAEP(sha256.New(), nil, key, value, nil)
		default:
			value, err = rsa.EncryptOAEP(sha256.New(), rand.Reader, &key.PublicKey, value, nil)
		}
		if err != nil {
			refuse(w, r, http.StatusBadRequest)
			return
		}
		answer(w, http.StatusOK, map[string]string{"kid": "https://" + r.Host + "/keys/machines/" + version, "value": base64.RawURLEncoding.EncodeToString(value)})
	})
}

// TestAzureKeyVault gets passphrases from the stand-in, with a token of an application.
func TestAzureKeyVault(t *testing.T) {
	t.Parallel()
	a := authority.New(t)
	host := strings.TrimPrefix(serve(t, a, keyVault(t)), "https://")
	login := serve(t, a, entra("https://vault.azure.net"))
	p := start(t, "plugins/encrypted-config/azurekeyvault")
	config := map[string]any{"ca": string(a.Certificate), "clientSecret": application(login, canary+"~secret&")}
	made, e := p.newPassphrase(host+"/keys/machines", config)
	require.Nil(t, e)
	assert.Len(t, made.Passphrase, 32)
	got, e := p.passphrase(made.URI, config)
	require.Nil(t, e)
	assert.Equal(t, made.Passphrase, got)
	again, e := p.newPassphrase(strings.SplitN(made.URI, "@", 2)[1], config) // a version
	require.Nil(t, e)
	assert.NotEqual(t, made.Passphrase, again.Passphrase)
	_, e = p.passphrase(strings.Replace(made.URI, "azurekeyvault://", "azurekeyvault://AAAA", 1), config)
	refused(t, e, "")
	_, e = p.passphrase(strings.Replace(made.URI, "/machines/", "/absent/", 1), config)
	require.NotNil(t, e)
	assert.Equal(t, pluginv1.CodeRetry, e.Code)
	_, e = p.newPassphrase(host+"/keys/absent", config)
	refused(t, e, "404")
	_, e = p.passphrase(made.URI, with(config, "clientSecret", application(login, canary)))
	refused(t, e, "401")
	_, e = p.passphrase(made.URI, with(config, "clientSecret", nil))
	require.NotNil(t, e)
	assert.Equal(t, pluginv1.CodeInvalidConfig, e.Code, "the token of the machine is for Azure alone")
}
