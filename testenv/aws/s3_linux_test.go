package aws

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/objectstores"
)

const s3Plugin = "plugins/remote-config/s3"

// store starts versitygw, and returns a rig for it and its user.
func store(t testing.TB) (*objectstores.S3, rig, user) {
	t.Helper()
	need(t)
	ca := authority.New(t)
	s := objectstores.StartS3(t, &ca)
	r := rig{ca: ca, caFile: filepath.Join(t.TempDir(), "ca.pem"), endpoint: s.Endpoint}
	require.NoError(t, os.WriteFile(r.caFile, ca.Certificate, 0o600))
	return s, r, user{ID: s.AccessKey, Secret: s.SecretKey}
}

// TestObjects: awscli, curl and the plugin read the same objects, with every kind of character in the key, and of each version.
//
//machineadm:core
func TestObjects(t *testing.T) {
	s, r, u := store(t)
	p := plugin(t, s3Plugin)
	file := filepath.Join(t.TempDir(), "object")
	for _, key := range []string{"a", "nodes/worker-1.yaml", "a b+c%20d&e=f?g#h;i,j:k@l!m$n'o(p)q*r~s", "\u00fc/\u65e5\u672c/\U0001f600", `a"b<c>d[e]f{g}h|i^j` + "`"} {
		require.NoError(t, os.WriteFile(file, []byte(stream+key), 0o600))
		_, err := r.aws(t, u, "s3", "cp", "--no-progress", file, "s3://"+s.Bucket+"/"+key, "--endpoint-url", r.endpoint)
		require.NoError(t, err, key)
		data, revision, err := p.fetch(t, "s3://"+s.Bucket+"/"+key, r.config(u, nil))
		require.NoError(t, err, key)
		assert.Equal(t, stream+key, string(data))
		text, err := r.aws(t, u, "s3api", "get-object", "--bucket", s.Bucket, "--key", key, "--endpoint-url", r.endpoint, file)
		require.NoError(t, err)
		var head struct {
			Version string `json:"VersionId"`
		}
		require.NoError(t, json.Unmarshal([]byte(text), &head))
		assert.Equal(t, head.Version, revision)
		theirs, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, data, theirs)
	}
	out, err := exec.CommandContext(t.Context(), "curl", "-sS", "--fail-with-body", "--cacert", r.caFile, "--aws-sigv4", "aws:amz:"+region+":s3", "--user", u.ID+":"+u.Secret,
		"-H", "X-Amz-Content-Sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", s.URL("nodes/worker-1.yaml")).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, stream+"nodes/worker-1.yaml", string(out))

	first, second := s.Put(t, "versions", []byte("1")), s.Put(t, "versions", []byte("2"))
	for want, header := range map[string]string{"1": first.Get("X-Amz-Version-Id"), "2": second.Get("X-Amz-Version-Id")} {
		data, revision, err := p.fetch(t, "s3://"+s.Bucket+"/versions", r.config(u, map[string]any{"versionId": header}))
		require.NoError(t, err)
		assert.Equal(t, want, string(data))
		assert.Equal(t, header, revision)
	}
	big := strings.Repeat("# 0123456789abc\n", 15<<16)
	s.Put(t, "big", []byte(big))
	data, _, err := p.fetch(t, "s3://"+s.Bucket+"/big", r.config(u, nil))
	require.NoError(t, err)
	assert.True(t, string(data) == big)
}

// TestRefusedObjects: what a plugin that has just started does not find or may not read is tried again.
func TestRefusedObjects(t *testing.T) {
	s, r, u := store(t)
	p := plugin(t, s3Plugin)
	s.Put(t, "object", []byte(stream))
	wrong, unknown := u, u
	wrong.Secret, unknown.ID = "c4n4ry", "AKIDUNKNOWN"
	for name, test := range map[string]struct {
		uri    string
		config map[string]any
	}{
		"403 (Forbidden): SignatureDoesNotMatch": {"object", r.config(wrong, nil)},
		"XAdminUserNotFound":                     {"object", r.config(unknown, nil)},
		"404 (Not Found): NoSuchKey":             {"absent", r.config(u, nil)},
	} {
		_, _, err := p.fetch(t, "s3://"+s.Bucket+"/"+test.uri, test.config)
		e := pluginv1.AsError(err)
		assert.Equal(t, pluginv1.CodeRetry, e.Code, "%+v", e)
		assert.Contains(t, e.Message, name)
		assert.NotContains(t, e.Message, "c4n4ry")
	}
	_, _, err := p.fetch(t, "s3://other-bucket/object", r.config(u, nil))
	assert.Contains(t, pluginv1.AsError(err).Message, "NoSuchBucket")
}

// TestReports: the report with the highest number stays, in whatever order the writers come.
func TestReports(t *testing.T) {
	s, r, u := store(t)
	p := plugin(t, s3Plugin)
	send := func(uri string, sequence int) error {
		return p.Report(t.Context(), pluginv1.ReportRequest{
			Document: document(t, "RemoteConfig", map[string]any{"provider": "s3", "uri": "s3://" + s.Bucket + "/" + uri, "providerConfig": r.config(u, nil)}),
			Target:   here(), Report: []byte(strconv.Itoa(sequence)), Sequence: uint64(sequence),
		})
	}
	for _, step := range []struct {
		sequence int
		want     string
	}{{2, "2"}, {1, "2"}, {2, "2"}, {10, "10"}, {9, "10"}} {
		require.NoError(t, send("a b/object.yaml", step.sequence))
		assert.Equal(t, step.want, string(s.Get(t, "a b/object.yaml.report.json")))
	}
	text, err := r.aws(t, u, "s3api", "head-object", "--bucket", s.Bucket, "--key", "a b/object.yaml.report.json", "--endpoint-url", r.endpoint)
	require.NoError(t, err)
	assert.Contains(t, text, `"machineadm-sequence": "10"`)
	assert.Contains(t, text, "application/json")

	r = r.inTurn(t)
	var all sync.WaitGroup
	for n := range 12 {
		all.Go(func() {
			for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); { // as the host does after a Retry
				err := send("race", 1+n)
				if err == nil || !assert.Equal(t, pluginv1.CodeRetry, pluginv1.AsError(err).Code, "%v", err) {
					return
				}
			}
			t.Errorf("report %d was not accepted", 1+n)
		})
	}
	all.Wait()
	assert.Equal(t, "12", string(s.Get(t, "race.report.json")))

	s.Put(t, "foreign.report.json", []byte("of another program"))
	require.NoError(t, send("foreign", 1))
	assert.Equal(t, "1", string(s.Get(t, "foreign.report.json")))
	require.NoError(t, p.Report(t.Context(), pluginv1.ReportRequest{
		Document: document(t, "ReportTarget", map[string]any{"provider": "s3", "uri": "s3://" + s.Bucket + "/in/report", "providerConfig": r.config(u, nil)}),
		Target:   here(), Report: []byte("r"), Sequence: 1,
	}))
	assert.Equal(t, "r", string(s.Get(t, "in/report")))
}

// TestStored: what the plugin stores is fetched by its reference alone, its report comes back, and both are removed. A signed URL is for its
// object, its method and its time.
func TestStored(t *testing.T) {
	s, r, u := store(t)
	p, web := plugin(t, s3Plugin), plugin(t, "plugins/remote-config/http")
	at := p.storage(t, "s3://"+s.Bucket+"/a b+c/", "presigned", r.config(u, nil))
	for _, text := range []string{stream, "replaced"} {
		stored := p.store(t, at, text)
		assert.Equal(t, "http", stored.Provider)
		assert.WithinDuration(t, time.Now().Add(time.Hour), stored.Expires, time.Minute)
		assert.NotContains(t, string(stored.ProviderConfig), u.Secret)
		assert.NotContains(t, stored.URI+stored.ReportURI, "?", "what grants access is no part of a URI")
		assert.Equal(t, text, web.follow(t, stored))
		require.NoError(t, web.reported(t, stored, "r"+text))
		data, _, err := p.fetch(t, at.URIPrefix+object+".report.json", r.config(u, nil))
		require.NoError(t, err)
		assert.Equal(t, "r"+text, string(data))
	}
	head, err := r.aws(t, u, "s3api", "head-object", "--bucket", s.Bucket, "--key", "a b+c/"+object, "--endpoint-url", r.endpoint)
	require.NoError(t, err)
	assert.Contains(t, head, "application/yaml")
	assert.Contains(t, head, `"machineadm-expires": "20`)

	stored := p.store(t, at, stream)
	other := stored
	other.URI += "-other"
	s.Put(t, "a b+c/"+object+"-other", []byte("of another machine"))
	_, err = web.fetchStored(t, other)
	assert.Contains(t, pluginv1.AsError(err).Message, "403")
	other.URI, other.ReportURI = stored.URI, stored.URI
	require.ErrorContains(t, web.reported(t, other, "a stream of its own"), "403")
	short, err := p.Store(t.Context(), pluginv1.StoreRequest{Storage: at, Name: object, Data: []byte(stream), Expiry: time.Second, Report: true})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := web.fetchStored(t, short)
		return err != nil && strings.Contains(err.Error(), "403")
	}, time.Minute, 100*time.Millisecond)

	for range 2 {
		require.NoError(t, p.Remove(t.Context(), pluginv1.RemoveRequest{Storage: at, Name: object}))
		for _, key := range []string{object, object + ".report.json"} {
			_, err = r.aws(t, u, "s3api", "head-object", "--bucket", s.Bucket, "--key", "a b+c/"+key, "--endpoint-url", r.endpoint)
			require.ErrorContains(t, err, "404")
		}
	}
	assert.Equal(t, "of another machine", string(s.Get(t, "a b+c/"+object+"-other")))

	role := p.storage(t, "s3://"+s.Bucket+"/of-", "role", r.config(u, nil)) // versitygw takes a new object for the deleted one
	stored = p.store(t, role, stream)
	assert.Equal(t, pluginv1.Stored{
		URI: role.URIPrefix + object, ReportURI: role.URIPrefix + object + ".report.json", ProviderConfig: stored.ProviderConfig,
	}, stored)
	var handed map[string]string
	require.NoError(t, json.Unmarshal(stored.ProviderConfig, &handed))
	assert.Equal(t, map[string]string{"endpoint": r.endpoint, "ca": string(r.ca.Certificate), "region": region}, handed)
	data, _, err := p.fetch(t, stored.URI, r.config(u, nil))
	require.NoError(t, err)
	assert.Equal(t, stream, string(data))

	wrong := u
	wrong.Secret = "c4n4ry"
	_, err = p.Store(t.Context(), pluginv1.StoreRequest{Storage: p.storage(t, at.URIPrefix, "role", r.config(wrong, nil)), Name: object})
	require.ErrorContains(t, err, "SignatureDoesNotMatch")
	assert.NotContains(t, err.Error(), "c4n4ry")
	_, err = p.Store(t.Context(), pluginv1.StoreRequest{Storage: p.storage(t, "s3://other-bucket/", "role", r.config(u, nil)), Name: object})
	require.ErrorContains(t, err, "NoSuchBucket")
	assert.NotContains(t, p.stderr.String()+web.stderr.String(), u.Secret)
}

// inTurn serves the requests one after the other. A HEAD of versitygw reads metadata and then the ETag, and an object that is written in
// between gives it one of each; S3 does not.
func (r rig) inTurn(t *testing.T) rig {
	t.Helper()
	to, err := url.Parse(r.endpoint)
	require.NoError(t, err)
	authorities := x509.NewCertPool()
	require.True(t, authorities.AppendCertsFromPEM(r.ca.Certificate))
	proxy := &httputil.ReverseProxy{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}},
		Rewrite:   func(p *httputil.ProxyRequest) { p.SetURL(to); p.Out.Host = p.In.Host }, // which is signed
	}
	pair, err := tls.X509KeyPair(r.ca.Issue(t, "localhost", func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} }))
	require.NoError(t, err)
	var mutex sync.Mutex
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	r.endpoint = s.URL
	return r
}

// TestRole: without credentials, the plugins and awscli use the metadata service's, and the plugins its region. The store is the
// stand-in, because versitygw accepts no session token.
func TestRole(t *testing.T) {
	r, node, _, _ := serving(t)
	m := &Metadata{Region: region, Role: "machineadm-node", ID: node.ID, Secret: node.Secret, Token: node.Token}
	serveMetadata(t, m, "169.254.169.254:80")
	const key = "nodes/worker 1.yaml"
	_, _, err := plugin(t, s3Plugin).fetch(t, "s3://bucket/"+key, r.config(user{}, nil))
	require.ErrorContains(t, err, "is not a host of AWS", "a document names no server for the role")
	permit(t, r.endpoint)
	data, _, err := plugin(t, s3Plugin).fetch(t, "s3://bucket/"+key, r.config(user{}, nil))
	require.NoError(t, err)
	assert.Equal(t, stream, string(data))
	assert.Equal(t, [2]int{2, 6}, [2]int{m.Sessions, m.Served}, "one session for region, role and keys, of each try")
	file := filepath.Join(t.TempDir(), "object")
	_, err = r.aws(t, user{}, "s3api", "get-object", "--bucket", "bucket", "--key", key, "--endpoint-url", r.endpoint, "--region", region, file)
	require.NoError(t, err)
	theirs, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, data, theirs)

	p := plugin(t, "plugins/remote-config/ssm")
	data, _, err = p.fetch(t, "ssm://flat", r.config(user{}, nil))
	require.NoError(t, err, r.log())
	assert.Equal(t, stream, string(data))
	text, err := r.aws(t, user{}, "ssm", "get-parameter", "--with-decryption", "--name", "flat", "--endpoint-url", r.endpoint, "--region", region)
	require.NoError(t, err)
	assert.Contains(t, text, `"Version": 1`)

	m.Role = "" // an instance without one
	_, _, err = p.fetch(t, "ssm://flat", r.config(user{}, nil))
	e := pluginv1.AsError(err)
	assert.Equal(t, pluginv1.CodeRetry, e.Code)
	assert.Equal(t, "169.254.169.254:80 answers with the status 404 (Not Found)", e.Message)
	assert.Empty(t, e.Facts, "the object was not asked for")
	m.Role, m.Region = "machineadm-node", "eu.central_1"
	_, _, err = p.fetch(t, "ssm://flat", r.config(user{}, nil))
	assert.Contains(t, pluginv1.AsError(err).Message, "no region")
	assert.NotContains(t, p.stderr.String(), "c4n4ry")
}

// TestSizes: each binary has at most 16 MiB.
func TestSizes(t *testing.T) {
	for _, source := range []string{s3Plugin, "plugins/remote-config/ssm", "plugins/remote-config/secretsmanager", "plugins/encrypted-config/awskms"} {
		info, err := os.Stat(built(t, source))
		require.NoError(t, err)
		t.Logf("%s: %.2f MiB", source, float64(info.Size())/(1<<20))
		assert.LessOrEqual(t, info.Size(), int64(16<<20), source)
	}
}
