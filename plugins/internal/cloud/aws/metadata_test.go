package aws

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/plugins/internal/cloud/cloudtest"
)

// instance is a metadata service whose answers a test changes. A strict one is in testenv/aws.
func instance(t testing.TB, changed map[string]http.HandlerFunc) string {
	t.Helper()
	text := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			assert.Equal(t, "s3ssion", r.Header.Get("X-Aws-Ec2-Metadata-Token"))
			_, _ = io.WriteString(w, text)
		}
	}
	handlers := map[string]http.HandlerFunc{
		"PUT /latest/api/token": func(w http.ResponseWriter, r *http.Request) {
			assert.Equal(t, "60", r.Header.Get("X-Aws-Ec2-Metadata-Token-Ttl-Seconds"))
			_, _ = io.WriteString(w, "s3ssion")
		},
		"GET /latest/meta-data/placement/region":              text("eu-west-9"),
		"GET /latest/meta-data/iam/security-credentials/":     text("node\nsecond"),
		"GET /latest/meta-data/iam/security-credentials/node": text(`{"Code":"Success","AccessKeyId":"AKROLE","SecretAccessKey":"c4n4ry","Token":"t0ken"}`),
	}
	for name, handler := range changed {
		handlers[name] = handler
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, ok := handlers[r.Method+" "+r.URL.Path]
		if !ok {
			handler = http.NotFound
		}
		handler(w, r)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

func answering(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://c4n4ry.example/")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

func TestMain(m *testing.M) { os.Exit(cloudtest.WithProxy(m)) }

func TestRoleWithoutProxy(t *testing.T) {
	t.Parallel()
	cloudtest.NoProxy(t, func(metadata string) error {
		_, err := settled(metadata).Access(t.Context(), Config{}, "")
		return err
	})
}

// TestRole: the second address answers if nothing is at the first.
func TestRole(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "c4n4ry")
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1")
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	m := settled("http://"+closed.Addr().String(), instance(t, nil))
	a, err := m.Access(t.Context(), Config{}, "")
	require.NoError(t, err)
	assert.Equal(t, "AKROLE", a.keys.id)
	assert.Equal(t, "t0ken", string(a.keys.token.Reveal()))
	assert.Equal(t, "https://kms.eu-west-9.amazonaws.com", a.URL("kms").String())
	a, err = m.Access(t.Context(), Config{}, "cn-north-1")
	require.NoError(t, err)
	assert.Equal(t, "https://s3.cn-north-1.amazonaws.com.cn", a.URL("s3").String())
}

// TestMetadata: whatever the metadata service answers, its values are in no error.
func TestMetadata(t *testing.T) {
	t.Parallel()
	const token, role, keys, region = "PUT /latest/api/token", "GET /latest/meta-data/iam/security-credentials/",
		"GET /latest/meta-data/iam/security-credentials/node", "GET /latest/meta-data/placement/region"
	for name, test := range map[string]struct {
		request string
		handler http.HandlerFunc
		code    pluginv1.Code
		text    string
	}{
		"no service":           {token, answering(404, "c4n4ry"), pluginv1.CodePrecondition, "404"},
		"disabled":             {token, answering(403, ""), pluginv1.CodePrecondition, "403"},
		"redirect":             {token, answering(302, ""), pluginv1.CodePrecondition, "302"},
		"redirect of the role": {role, answering(302, ""), pluginv1.CodePrecondition, "302"},
		"busy":                 {token, answering(503, ""), pluginv1.CodeRetry, "503"},
		"64 KiB":               {token, answering(200, strings.Repeat("c4n4ry", 11<<10)), pluginv1.CodePrecondition, "more data"},
		"no role":              {role, answering(404, ""), pluginv1.CodePrecondition, "404"},
		"wrong role":           {role, answering(200, "../c4n4ry"), pluginv1.CodePrecondition, "has no role"},
		"no keys":              {keys, answering(200, `{"Code":"c4n4ry"}`), pluginv1.CodePrecondition, "has no keys"},
		"no token":             {keys, answering(200, `{"Code":"Success","AccessKeyId":"c4n4ry","SecretAccessKey":"c4n4ry"}`), pluginv1.CodePrecondition, "has no keys"},
		"no JSON":              {keys, answering(200, "c4n4ry"), pluginv1.CodePrecondition, "has no keys"},
		"region":               {region, answering(200, "c4n4ry.example/"), pluginv1.CodePrecondition, "has no region"},
		"cut": {keys, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99")
			_, _ = io.WriteString(w, "c4n4ry")
		}, pluginv1.CodeRetry, "ended before"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := instance(t, map[string]http.HandlerFunc{test.request: test.handler})
			_, err := settled(at).Access(t.Context(), Config{}, "")
			e := refusal(t, err, test.code, test.text)
			assert.Empty(t, e.Facts, "nothing was asked of the source")
			assert.NotEmpty(t, e.Hint)
		})
	}
	t.Run("spreading", func(t *testing.T) {
		t.Parallel()
		at := instance(t, map[string]http.HandlerFunc{keys: answering(200, `{"Code":"Failed"}`)})
		other := instance(t, map[string]http.HandlerFunc{role: answering(404, "")})
		for _, at := range []string{at, other} {
			m := settled(at)
			m.Started = time.Now()
			_, err := m.Access(t.Context(), Config{}, "")
			refused(t, err, pluginv1.CodeRetry, "")
		}
	})
	t.Run("silent", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		_, err = settled("http://"+l.Addr().String()).Access(t.Context(), Config{}, "")
		refused(t, err, pluginv1.CodeRetry, "does not answer")
	})
}
