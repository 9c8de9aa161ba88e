package sources

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// site is the configuration of nginx: a server per kind of authentication, compression for clients that accept it, and a log of reports.
const site = `
log_format report escape=none '$request_method $http_machineadm_sequence $content_type $request_body';
gzip_types *; gzip_min_length 1;
ssl_certificate /etc/nginx/source.pem; ssl_certificate_key /etc/nginx/source.key;
map "$request_method $uri $http_authorization" $denied {
	default 1; "~ Bearer manager-t0ken$" 0; "~^GET \S+ Bearer machine-t0ken$" 0; "~^PUT \S+[.]report[.]json Bearer machine-t0ken$" 0;
}
server { listen 127.0.0.1:8081; return 204; }
server {
	listen 127.0.0.1:443 ssl; http2 on; root /srv/www;
	location = /basic.yaml { auth_basic site; auth_basic_user_file /etc/nginx/users; }
	location = /bearer.yaml { if ($http_authorization != "Bearer t0ken") { return 401; } }
	location = /key.yaml { if ($http_x_key != "k3y") { return 403; } }
	location = /busy.yaml { add_header Retry-After 7 always; return 429; }
	location = /gone.yaml { return 410; }
	location = /moved.yaml { return 302 https://$host/bearer.yaml; }
	location = /plain.yaml { return 302 http://$host/stream.yaml; }
	location = /metadata.yaml { return 302 http://169.254.169.254/latest/meta-data/; }
	location = /metadata-tls.yaml { return 302 https://169.254.169.254/latest/meta-data/; }
	location = /circle.yaml { return 301 https://$host/circle.yaml; }
	location = /other.yaml { return 307 https://127.0.0.2/stream.yaml; }
	location = /slow.yaml { limit_rate_after 2m; limit_rate 64k; }
	location /store/ { dav_methods PUT DELETE; if ($denied) { return 403; } }
	location = /report { proxy_pass http://127.0.0.1:8081; access_log /var/log/nginx/report.log report; }
}
server { listen 127.0.0.1:8443 ssl; root /srv/www; ssl_verify_client on; ssl_client_certificate /etc/nginx/ca.pem; }
server { listen 127.0.0.1:8444 ssl; root /srv/www; ssl_certificate /etc/nginx/expired.pem; ssl_certificate_key /etc/nginx/expired.key; }
server { listen 127.0.0.1:8445 ssl; root /srv/www; ssl_certificate /etc/nginx/future.pem; ssl_certificate_key /etc/nginx/future.key; }
server { listen 127.0.0.1:80; root /srv/www; }
`

// machine is a node with nginx and the plugin.
type machine struct {
	*nodes.Node
	authority authority.Authority
}

const stream = "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Sysctl\nmetadata: {name: node}\nspec: {parameters: {net.core.somaxconn: 8191}}\n"

func sized(n int) []byte { return bytes.Repeat([]byte("# 0123456789abc\n"), n/16) }

func boot(t *testing.T, layers ...nodes.Layer) machine {
	t.Helper()
	a, dir := authority.New(t), built(t, map[string]string{provider: "plugins/remote-config/http"})
	files := map[string][]byte{
		"etc/nginx/conf.d/source.conf": []byte(site), "etc/nginx/ca.pem": a.Certificate, "etc/nginx/users": []byte("me:{PLAIN}p-w\n"),
		"srv/www/big.yaml": sized(15 << 20), "srv/www/slow.yaml": sized(15 << 20), "srv/www/17MiB.yaml": sized(17 << 20),
	}
	for _, name := range []string{"stream", "basic", "bearer", "key"} {
		files["srv/www/"+name+".yaml"] = []byte(stream)
	}
	valid := func(from, to int) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Now().AddDate(from, 0, 0), time.Now().AddDate(to, 0, 0)
		}
	}
	for name, edit := range map[string]func(*x509.Certificate){"source": valid(-1, 1), "expired": valid(-2, -1), "future": valid(1, 2)} {
		certificate, key := a.Issue(t, "source.example", onLoopback, edit)
		files["etc/nginx/"+name+".pem"], files["etc/nginx/"+name+".key"] = certificate, key
	}
	n := nodes.Boot(t, nodes.Options{
		Suite: nodes.Trixie, Layers: append([]nodes.Layer{nodes.Nginx}, layers...),
		Prepare: func(root string) error {
			errs := []error{os.RemoveAll(filepath.Join(root, "etc/nginx/sites-enabled/default"))} // listens on port 80
			for name, data := range files {
				at := filepath.Join(root, name)
				errs = append(errs, os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, data, 0o644)) //nolint:gosec // read by nginx
			}
			return errors.Join(errs...)
		},
	})
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, n.CopyIn(t.Context(), self, "/usr/bin/"+program, 0o755))
	require.NoError(t, n.CopyIn(t.Context(), filepath.Join(dir, provider), "/usr/bin/"+provider, 0o755))
	return machine{n, a}
}

// call makes a call on the node.
func (m machine) call(ctx context.Context, c Call) (Result, error) {
	c.Plugin = "/usr/bin/" + provider
	data, err := json.Marshal(c)
	if err != nil {
		return Result{}, err
	}
	said, err := m.ExecInput(ctx, bytes.NewReader(data), program)
	if err != nil {
		return Result{}, err
	}
	var r Result
	if err := json.Unmarshal([]byte(said.Stdout), &r); err != nil {
		return r, errors.Join(err, errors.New(said.Stdout+said.Stderr))
	}
	return r, nil
}

func (m machine) fetch(t *testing.T, uri string, config map[string]any, edits ...func(*Call)) Result {
	t.Helper()
	c := Call{Spec: spec(m.authority, uri, config)}
	for _, edit := range edits {
		edit(&c)
	}
	r, err := m.call(t.Context(), c)
	require.NoError(t, err)
	return r
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// TestNginx fetches from nginx with an authority of its own, by every kind of authentication, and sends it a report.
//
//machineadm:core
func TestNginx(t *testing.T) {
	t.Parallel()
	m := boot(t)
	bearer := map[string]any{"bearer": secret("t0ken")}
	certificate, key := m.authority.Issue(t, "node", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} })
	own := map[string]any{"clientCertificate": map[string]any{"certificate": string(certificate), "key": secret(string(key))}}
	for name, test := range map[string]struct {
		uri    string
		config map[string]any
	}{
		"anonymous":          {"https://127.0.0.1/stream.yaml", nil},
		"basic":              {"https://127.0.0.1/basic.yaml", map[string]any{"basic": map[string]any{"username": "me", "password": secret("p-w")}}},
		"bearer":             {"https://127.0.0.1/bearer.yaml", bearer},
		"header":             {"https://127.0.0.1/key.yaml", map[string]any{"headers": map[string]any{"X-Key": secret("k3y")}}},
		"client certificate": {"https://127.0.0.1:8443/stream.yaml", own},
		"redirect":           {"https://127.0.0.1/moved.yaml", bearer},
		"pin":                {"https://127.0.0.1/stream.yaml", map[string]any{"pins": []string{pin(t, m.authority.Certificate)}}},
	} {
		r := m.fetch(t, test.uri, test.config)
		require.Nil(t, r.Error, name)
		assert.Equal(t, digest([]byte(stream)), r.SHA256, name)
		assert.NotEmpty(t, r.Revision, name)
	}
	big := m.fetch(t, "https://127.0.0.1/big.yaml", nil)
	require.Nil(t, big.Error)
	assert.Equal(t, digest(sized(15<<20)), big.SHA256)
	report, err := m.call(t.Context(), Call{
		Kind: "ReportTarget", Spec: spec(m.authority, "https://127.0.0.1/report", bearer), Report: []byte(`{"outcome": "Changed"}`), Sequence: 7,
	})
	require.NoError(t, err)
	require.Nil(t, report.Error)
	assert.Equal(t, "POST 7 application/json {\"outcome\": \"Changed\"}\n", m.MustExec(t, "cat", "/var/log/nginx/report.log").Stdout)
	m.refusals(t, own)
}

func (m machine) refusals(t *testing.T, own map[string]any) {
	t.Helper()
	other := authority.New(t)
	for uri, want := range map[string]struct {
		config map[string]any
		code   pluginv1.Code
		text   string
	}{
		"https://127.0.0.1/bearer.yaml":       {code: pluginv1.CodePrecondition, text: "127.0.0.1:443 answers with the status 401 (Unauthorized)"},
		"https://127.0.0.1/key.yaml":          {code: pluginv1.CodePrecondition, text: "403 (Forbidden)"},
		"https://127.0.0.1/absent.yaml":       {code: pluginv1.CodePrecondition, text: "404 (Not Found)"},
		"https://127.0.0.1/gone.yaml":         {code: pluginv1.CodePrecondition, text: "410 (Gone)"},
		"https://127.0.0.1/busy.yaml":         {code: pluginv1.CodeRetry, text: "429 (Too Many Requests)"},
		"https://127.0.0.1/17MiB.yaml":        {code: pluginv1.CodePrecondition, text: "larger than 16777216 bytes"},
		"https://127.0.0.1/plain.yaml":        {code: pluginv1.CodePrecondition, text: "redirects to another scheme than https"},
		"https://127.0.0.1/metadata.yaml":     {code: pluginv1.CodePrecondition, text: "redirects to another scheme than https"},
		"https://127.0.0.1/metadata-tls.yaml": {code: pluginv1.CodePrecondition, text: "redirects to 169.254.169.254:443"},
		"https://127.0.0.1/circle.yaml":       {code: pluginv1.CodePrecondition, text: "redirects once more"},
		"https://127.0.0.1/other.yaml":        {code: pluginv1.CodePrecondition, text: "redirects to 127.0.0.2:443"},
		"https://127.0.0.1:80/stream.yaml":    {code: pluginv1.CodePrecondition, text: "127.0.0.1:80 does not answer by TLS"},
		"https://127.0.0.1:8443/stream.yaml":  {code: pluginv1.CodePrecondition, text: "answers with the status 400"},
		"https://127.0.0.1:8444/stream.yaml":  {code: pluginv1.CodePrecondition, text: "expired"},
		"https://127.0.0.1:8445/stream.yaml":  {code: pluginv1.CodePrecondition, text: "not yet valid"},
		"https://127.0.0.2/stream.yaml":       {code: pluginv1.CodeRetry, text: "127.0.0.2:443 cannot be reached: connection refused"},
		"http://127.0.0.1/stream.yaml":        {code: pluginv1.CodeInvalidConfig},
		"https://127.0.0.1/stream.yaml":       {config: map[string]any{"ca": string(other.Certificate)}, code: pluginv1.CodePrecondition, text: "unknown authority"},
		"https://127.0.0.1/basic.yaml":        {config: map[string]any{"pins": []string{pin(t, other.Certificate)}}, code: pluginv1.CodePrecondition, text: "none of the pinned keys"},
		"https://127.0.0.1/moved.yaml":        {config: own, code: pluginv1.CodePrecondition, text: "401 (Unauthorized)"},
	} {
		r := m.fetch(t, uri, want.config)
		require.NotNil(t, r.Error, uri)
		assert.Equal(t, want.code, r.Error.Code, "%s: %v", uri, r.Error)
		assert.Contains(t, r.Error.Message, want.text, uri)
		assert.Empty(t, r.Stderr)
		if want.code == pluginv1.CodeRetry && r.Error.RetryAfter > 0 {
			assert.Equal(t, 7*time.Second, r.Error.RetryAfter)
		}
	}
	digested := func(c *Call) {
		c.Spec["sha256"] = digest([]byte(stream))
		delete(c.Spec, "providerConfig")
	}
	assert.Nil(t, m.fetch(t, "http://127.0.0.1/stream.yaml", nil, digested).Error)
}

// TestNginxStores: an object is put, fetched and reported about with the credentials of the machines, and deleted with its report.
func TestNginxStores(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.MustExec(t, "install", "-d", "-o", "www-data", "/srv/www/store")
	config, err := json.Marshal(map[string]any{
		"bearer": secret("manager-t0ken"), "ca": string(m.authority.Certificate), "read": map[string]any{"bearer": secret("machine-t0ken")},
	})
	require.NoError(t, err)
	in := pluginv1.Storage{URIPrefix: "https://127.0.0.1/store/of-", Access: pluginv1.AccessRole, ProviderConfig: config, Target: target.Target{OS: "linux"}}
	call := func(c Call) Result {
		t.Helper()
		r, err := m.call(t.Context(), c)
		require.NoError(t, err)
		assert.NotContains(t, r.Stderr, "t0ken")
		return r
	}
	const name = "machine-1"
	storing := &pluginv1.StoreRequest{Storage: in, Name: name, Data: []byte("replaced"), Report: true}
	for _, storing.Data = range [][]byte{storing.Data, []byte(stream)} {
		r := call(Call{Store: storing})
		require.Nil(t, r.Error)
		assert.Equal(t, "https://127.0.0.1/store/of-machine-1", r.Stored.URI)
		assert.NotContains(t, string(r.Stored.ProviderConfig), "manager-t0ken")
		machine := map[string]any{
			"provider": "http", "uri": r.Stored.URI, "report": map[string]any{"uri": r.Stored.ReportURI}, "providerConfig": json.RawMessage(r.Stored.ProviderConfig),
		}
		fetched := call(Call{Spec: machine})
		require.Nil(t, fetched.Error)
		assert.Equal(t, digest(storing.Data), fetched.SHA256)
		require.Nil(t, call(Call{Spec: machine, Report: []byte("{}"), Sequence: 1}).Error)
		read := call(Call{Spec: map[string]any{"provider": "http", "uri": in.URIPrefix + name + ".report.json", "providerConfig": json.RawMessage(config)}})
		require.Nil(t, read.Error)
		assert.Equal(t, digest([]byte("{}")), read.SHA256)
	}
	machines := in
	machines.ProviderConfig = bytes.ReplaceAll(config, []byte("manager"), []byte("machine"))
	e := call(Call{Store: &pluginv1.StoreRequest{Storage: machines, Name: name}}).Error
	require.NotNil(t, e)
	assert.Contains(t, e.Message, "403")
	assert.Equal(t, "uriPrefix", e.Violations[0].Field)
	m.MustExec(t, "touch", "/srv/www/store/of-machine-10")
	for range 2 {
		require.Nil(t, call(Call{Remove: &pluginv1.RemoveRequest{Storage: in, Name: name}}).Error)
		assert.Equal(t, "of-machine-10\n", m.MustExec(t, "ls", "/srv/www/store").Stdout)
	}
}

// TestNginxKilled: nginx is killed in the middle of an object, and started again: the object is whole.
func TestNginxKilled(t *testing.T) {
	t.Parallel()
	m := boot(t)
	type answer struct {
		Result
		err error
	}
	done := make(chan answer, 1)
	fetch := func(retry time.Duration) {
		go func() {
			r, err := m.call(t.Context(), Call{Spec: spec(m.authority, "https://127.0.0.1/slow.yaml", nil), RetryFor: retry})
			done <- answer{r, err}
		}()
		require.Eventually(t, func() bool { // of the 15 MiB the last 13 take minutes
			r, err := m.Exec(t.Context(), "sh", "-c", "ss -tnHi state established '( sport = :443 )' | grep -o 'bytes_acked:[0-9]*' | grep -Eq ':[0-9]{7,}'")
			return err == nil && r.ExitCode == 0
		}, needs.Timeout(time.Minute), 20*time.Millisecond)
		m.MustExec(t, "systemctl", "kill", "--signal=KILL", "nginx.service")
	}
	fetch(0)
	cut := <-done
	require.NoError(t, cut.err)
	require.NotNil(t, cut.Error)
	assert.Equal(t, pluginv1.CodeRetry, cut.Error.Code)
	assert.Contains(t, cut.Error.Message, "127.0.0.1:443 ended before the object was complete")
	m.MustExec(t, "systemctl", "restart", "nginx.service")
	fetch(5 * time.Minute)
	m.MustExec(t, "sh", "-c", "sed -i s/limit_rate_after.*64k/limit_rate\\ 0/ /etc/nginx/conf.d/source.conf && systemctl restart nginx.service")
	whole := <-done
	require.NoError(t, whole.err)
	require.Nil(t, whole.Error)
	assert.Equal(t, digest(sized(15<<20)), whole.SHA256)
	assert.Equal(t, 15<<20, whole.Size)
}

// pin is the digest of the key of a certificate.
func pin(t *testing.T, certificate []byte) string {
	t.Helper()
	block, _ := pem.Decode(certificate)
	require.NotNil(t, block)
	c, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}
