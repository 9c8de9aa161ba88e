package stores

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/objectstores"
)

// google is a stand-in for the token server of Google Cloud and for its Key Management Service, by their documentation. It gives
// tokens for one service account, and requires them for what is behind it.
type google struct {
	authority authority.Authority
	key       *rsa.PrivateKey
	at, scope string
	aead      cipher.AEAD
	behind    http.Handler
}

const access = "ya29." + canary

// startGoogle starts the stand-in. Behind it is the Key Management Service, unless a store is.
func startGoogle(t *testing.T, scope string, store *objectstores.GCS) *google {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	block, err := aes.NewCipher(make([]byte, 32))
	require.NoError(t, err)
	aead, err := cipher.NewGCM(block)
	require.NoError(t, err)
	g := &google{authority: authority.New(t), key: key, scope: "https://www.googleapis.com/auth/" + scope, aead: aead}
	g.behind = http.HandlerFunc(g.kms)
	if store != nil {
		to, err := url.Parse(store.Endpoint)
		require.NoError(t, err)
		g.behind = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Header.Del("Authorization") }}
	}
	g.at = serve(t, g.authority, g)
	return g
}

// config is the providerConfig of the service account.
func (g *google) config(t *testing.T) map[string]any {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(g.key)
	require.NoError(t, err)
	file, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "p", "private_key_id": "k1", "client_email": "machine@p.iam.gserviceaccount.com",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": g.at + "/token", "note": canary,
	})
	require.NoError(t, err)
	return map[string]any{"serviceAccountKey": secret(string(file)), "endpoint": g.at, "ca": string(g.authority.Certificate)}
}

// ServeHTTP implements http.Handler.
func (g *google) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/token" && g.isGranted(r):
		answer(w, http.StatusOK, map[string]any{"access_token": access, "expires_in": 3599, "token_type": "Bearer"})
	case r.URL.Path == "/token":
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": canary})
	case r.Header.Get("Authorization") == "" && g.isSigned(r):
		g.behind.ServeHTTP(w, r)
	case r.Header.Get("Authorization") != "Bearer "+access:
		refuse(w, r, http.StatusUnauthorized)
	default:
		g.behind.ServeHTTP(w, r)
	}
}

// isGranted checks a request for a token: RFC 7523 and developers.google.com/identity/protocols/oauth2/service-account.
func (g *google) isGranted(r *http.Request) bool {
	if r.Method != http.MethodPost || r.ParseForm() != nil || r.PostForm.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || len(r.PostForm) != 2 {
		return false
	}
	parts := strings.Split(r.PostForm.Get("assertion"), ".")
	if len(parts) != 3 {
		return false
	}
	var raw [3][]byte
	for i, part := range parts {
		data, err := base64.RawURLEncoding.Strict().DecodeString(part)
		if err != nil {
			return false
		}
		raw[i] = data
	}
	var header struct{ Alg, Typ, Kid string }
	var claims struct {
		Iss, Scope, Aud string
		Iat, Exp        int64
	}
	digest, now := sha256.Sum256([]byte(parts[0]+"."+parts[1])), time.Now().Unix()
	return json.Unmarshal(raw[0], &header) == nil && json.Unmarshal(raw[1], &claims) == nil &&
		header.Alg == "RS256" && header.Typ == "JWT" && header.Kid == "k1" &&
		claims.Iss == "machine@p.iam.gserviceaccount.com" && claims.Scope == g.scope && claims.Aud == g.at+"/token" &&
		claims.Iat <= now && claims.Exp > now && claims.Exp-claims.Iat <= 3600 &&
		rsa.VerifyPKCS1v15(&g.key.PublicKey, crypto.SHA256, digest[:], raw[2]) == nil
}

// isSigned checks a signed URL: cloud.google.com/storage/docs/authentication/canonical-requests.
func (g *google) isSigned(r *http.Request) bool {
	signed, signature, found := strings.Cut(r.URL.RawQuery, "&X-Goog-Signature=")
	raw, err := hex.DecodeString(signature)
	query, parsed := url.ParseQuery(signed)
	at, stamped := time.Parse("20060102T150405Z", query.Get("X-Goog-Date"))
	valid, number := strconv.Atoi(query.Get("X-Goog-Expires"))
	if !found || errors.Join(err, parsed, stamped, number) != nil || valid > 604800 || time.Now().After(at.Add(time.Duration(valid)*time.Second)) {
		return false
	}
	scope := query.Get("X-Goog-Date")[:8] + "/auto/storage/goog4_request"
	canonical := sha256.Sum256([]byte(r.Method + "\n" + r.URL.EscapedPath() + "\n" + signed + "\nhost:" + r.Host + "\n\nhost\nUNSIGNED-PAYLOAD"))
	digest := sha256.Sum256([]byte("GOOG4-RSA-SHA256\n" + query.Get("X-Goog-Date") + "\n" + scope + "\n" + hex.EncodeToString(canonical[:])))
	return query.Get("X-Goog-Algorithm") == "GOOG4-RSA-SHA256" && query.Get("X-Goog-SignedHeaders") == "host" &&
		query.Get("X-Goog-Credential") == "machine@p.iam.gserviceaccount.com/"+scope &&
		rsa.VerifyPKCS1v15(&g.key.PublicKey, crypto.SHA256, digest[:], raw) == nil
}

const kmsKey = "projects/p/locations/europe-west1/keyRings/r/cryptoKeys/machines"

// kms serves encrypt and decrypt of one key: cloud.google.com/kms/docs/reference/rest.
func (g *google) kms(w http.ResponseWriter, r *http.Request) {
	var in struct{ Plaintext, Ciphertext []byte }
	if !strings.HasPrefix(r.URL.Path, "/v1/"+kmsKey+":") {
		refuse(w, r, http.StatusNotFound)
		return
	}
	if r.Method != http.MethodPost || r.URL.RawQuery != "" || !decode(r, &in) {
		refuse(w, r, http.StatusBadRequest)
		return
	}
	nonce := make([]byte, g.aead.NonceSize())
	switch {
	case strings.HasSuffix(r.URL.Path, ":encrypt") && len(in.Plaintext) > 0 && in.Ciphertext == nil:
		sealed := g.aead.Seal(nil, nonce, in.Plaintext, nil)
		answer(w, http.StatusOK, map[string]any{"name": kmsKey + "/cryptoKeyVersions/1", "ciphertext": sealed, "protectionLevel": "SOFTWARE"})
	case strings.HasSuffix(r.URL.Path, ":decrypt") && in.Plaintext == nil:
		if plain, err := g.aead.Open(nil, nonce, in.Ciphertext, nil); err == nil {
			answer(w, http.StatusOK, map[string]any{"plaintext": plain, "usedPrimary": true})
			return
		}
		fallthrough
	default:
		refuse(w, r, http.StatusBadRequest)
	}
}

// TestGCS fetches from fake-gcs-server, and keeps reports there, with a token of the stand-in.
func TestGCS(t *testing.T) {
	t.Parallel()
	store := objectstores.StartGCS(t, nil)
	g := startGoogle(t, "devstorage.read_write", store)
	p, config := start(t, "plugins/remote-config/gcs"), g.config(t)
	const name = "nodes/worker 1+2#3%25?.yaml"
	uri := "gs://" + store.Bucket + "/" + name
	generations := []string{}
	for _, text := range []string{"first", "second"} {
		var resource struct{ Generation string }
		require.NoError(t, json.Unmarshal(store.Put(t, name, []byte(text)), &resource))
		generations = append(generations, resource.Generation)
		o, e := p.fetch(uri, config)
		require.Nil(t, e)
		assert.Equal(t, object{[]byte(text), resource.Generation}, o)
	}
	assert.NotEqual(t, generations[0], generations[1])
	store.Put(t, "15MiB", []byte(strings.Repeat("0123456789abcde\n", 15<<16)))
	o, e := p.fetch("gs://"+store.Bucket+"/15MiB", config)
	require.Nil(t, e)
	assert.Len(t, o.data, 15<<20)

	stored := func() string { return string(store.Get(t, name+".report.json")) }
	require.Nil(t, p.report(uri, "", config, 2, `{"report": 2}`))
	assert.Equal(t, `{"report": 2}`, stored())
	require.Nil(t, p.report(uri, "", config, 1, `{"report": 1}`))
	assert.Equal(t, `{"report": 2}`, stored())
	require.Nil(t, p.report(uri, "gs://"+store.Bucket+"/"+name+".report.json", config, 3, `{"report": 3}`))
	assert.Equal(t, `{"report": 3}`, stored())
	p.reportAll("gs://"+store.Bucket+"/all", config, 12)
	assert.Equal(t, `{"report": 12}`, string(store.Get(t, "all.report.json")))

	other, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	refused(t, p.report(uri, "", (&google{authority: g.authority, key: other, at: g.at}).config(t), 4, "{}"), "401")
	_, e = p.fetch(uri, (&google{authority: g.authority, key: other, at: g.at}).config(t))
	refused(t, e, "401")
	_, e = p.fetch("gs://"+store.Bucket+"/absent", config) // for a minute, an object may become visible
	require.NotNil(t, e)
	assert.Equal(t, pluginv1.CodeRetry, e.Code)
	assert.Contains(t, e.Message, "404")
}

// TestGCSStores: with the key of a service account, a machine needs nothing but what the reference has, and its signatures are for one object.
func TestGCSStores(t *testing.T) {
	t.Parallel()
	store := objectstores.StartGCS(t, nil)
	g := startGoogle(t, "devstorage.read_write", store)
	p, web, config := start(t, "plugins/remote-config/gcs"), start(t, "plugins/remote-config/http"), g.config(t)
	at := storage(t, "gs://"+store.Bucket+"/a b+c/", "presigned", config)
	kept := p.keeps(web, at)
	assert.Equal(t, "http", kept.Provider)
	assert.WithinDuration(t, time.Now().Add(time.Hour), kept.Expires, time.Minute)
	assert.NotContains(t, string(kept.ProviderConfig), canary)
	own := json.RawMessage(kept.ProviderConfig)
	_, e := web.fetch(kept.URI+"-other", own)
	refused(t, e, "401")
	refused(t, web.report(kept.URI, kept.URI, own, 1, "{}"), "401")

	at.Access = "role"
	handed, e := p.store(at, stream)
	require.Nil(t, e)
	assert.Equal(t, at.URIPrefix+stored, handed.URI)
	assert.NotContains(t, string(handed.ProviderConfig), "serviceAccountKey")
	assert.Equal(t, stream, string(store.Get(t, "a b+c/"+stored)))
	_, e = p.store(storage(t, "gs://"+store.Bucket+"/", "presigned", map[string]any{}), stream)
	require.NotNil(t, e)
	assert.Equal(t, "access", e.Violations[0].Field)
	_, e = p.store(storage(t, "gs://absent-bucket/", "role", config), stream)
	require.NotNil(t, e)
	assert.Contains(t, e.Message, "404")
}

// TestGCPKMS gets passphrases from the stand-in.
func TestGCPKMS(t *testing.T) {
	t.Parallel()
	g := startGoogle(t, "cloudkms", nil)
	p, config := start(t, "plugins/encrypted-config/gcpkms"), g.config(t)
	made, e := p.newPassphrase(kmsKey, config)
	require.Nil(t, e)
	assert.Len(t, made.Passphrase, 32)
	got, e := p.passphrase(made.URI, config)
	require.Nil(t, e)
	assert.Equal(t, made.Passphrase, got)
	again, e := p.newPassphrase(kmsKey, config)
	require.Nil(t, e)
	assert.False(t, slices.Equal(made.Passphrase, again.Passphrase))
	_, e = p.passphrase(strings.Replace(made.URI, "gcpkms://", "gcpkms://AAAA", 1), config)
	refused(t, e, "")
	_, e = p.passphrase(made.URI+"-absent", config)
	require.NotNil(t, e)
	assert.Equal(t, pluginv1.CodeRetry, e.Code)
	_, e = p.newPassphrase(kmsKey+"-absent", config)
	refused(t, e, "404")
	_, e = p.newPassphrase("machines", with(config, "endpoint", "http://a"))
	require.NotNil(t, e)
	assert.Len(t, e.Violations, 3)
}
