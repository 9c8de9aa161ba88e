package main

import (
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/plugins/internal/cloud/cloudtest"
	"github.com/machineadm/machineadm/sdk"
)

var update = flag.Bool("update", false, "renew the golden files")

const canary = "c4n4ry-of-the-document"

func written(t testing.TB, spec any) []byte {
	t.Helper()
	data, err := json.Marshal(map[string]any{
		"apiVersion": "machineadm.cluster.x-k8s.io/v1alpha1", "kind": "RemoteConfig", "metadata": map[string]any{"name": "a"}, "spec": spec,
	})
	require.NoError(t, err)
	return data
}

func here() target.Target { return target.Target{OS: runtime.GOOS} }

// validated returns the violations of a spec.
func validated(t testing.TB, spec any) []sdk.Violation {
	t.Helper()
	err := sdk.NewSource(source(), runtime.GOOS).Fetch(t.Context(), pluginv1.FetchRequest{Document: written(t, spec), Target: here(), ValidateOnly: true}, nil)
	if err == nil {
		return nil
	}
	return pluginv1.AsError(err).Violations
}

// TestViolations: all violations of a document at once, none with a value. Each case of the golden file is a spec.
func TestViolations(t *testing.T) {
	t.Parallel()
	const file = "testdata/violations.golden"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var got strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "{") {
			continue
		}
		fmt.Fprint(&got, line)
		for _, v := range validated(t, json.RawMessage(strings.ReplaceAll(line, "CANARY", canary))) {
			fmt.Fprintf(&got, "  %s: %s (%s)\n", v.Field, v.Message, v.Hint)
		}
	}
	assert.NotContains(t, got.String(), canary)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got.String()), 0o644)) //nolint:gosec // a golden file
	}
	assert.Equal(t, string(text), got.String())
}

// TestDescribe: the token is declared as a secret.
func TestDescribe(t *testing.T) {
	t.Parallel()
	d, err := sdk.NewSource(source(), runtime.GOOS).Describe(t.Context(), pluginv1.DescribeRequest{Target: here()})
	require.NoError(t, err)
	assert.Equal(t, []string{pluginv1.CapabilityReport, pluginv1.CapabilityStore}, d.Capabilities)
	for _, kind := range d.Kinds {
		assert.Equal(t, []string{"spec.providerConfig.token", "spec.providerConfig.read.token"}, kind.SecretFields)
	}
}

// FuzzParse: what is accepted is what is written, and a path of a request that it makes has no other segments.
func FuzzParse(f *testing.F) {
	f.Add("kube://a.example:6443/machines/node-1/value")
	f.Add("kube://[::1]:6443/machines/node-1.a/a_B-c.d")
	f.Add("kube://a.example/machines/node-1.report.json")
	f.Add("kube://a/../b/c")
	f.Add("kube://a?b/b/b/c%2f")
	f.Fuzz(func(t *testing.T, uri string) {
		at, violations := parse("spec.uri", uri)
		if len(violations) > 0 {
			for _, v := range violations {
				require.Equal(t, "spec.uri", v.Field)
			}
			return
		}
		require.Contains(t, []string{at.String(), strings.TrimSuffix(at.String(), "/"+reportKey)}, uri)
		r, err := http.NewRequest(http.MethodGet, at.url("secrets"), nil)
		require.NoError(t, err)
		require.Equal(t, "/api/v1/namespaces/"+at.namespace+"/secrets/"+at.name, r.URL.EscapedPath())
		require.Empty(t, r.URL.RawQuery)
		if to, err := at.beside(); err == nil {
			require.Equal(t, at.namespace, to.namespace)
		}
	})
}

// TestNoRedirect: the token goes to the server of the document alone.
func TestNoRedirect(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.NotEqual(t, "/next", r.URL.Path)
		http.Redirect(w, r, "/next", http.StatusFound)
	}))
	t.Cleanup(s.Close)
	err := sdk.NewSource(source(), runtime.GOOS).Fetch(t.Context(), pluginv1.FetchRequest{Target: here(), MaxBytes: 1, Document: written(t, map[string]any{
		"provider": "kube", "uri": strings.Replace(s.URL, "https", "kube", 1) + "/a/b/c",
		"providerConfig": map[string]any{"token": map[string]any{"value": canary}, "ca": ca(s)},
	})}, nil)
	e := pluginv1.AsError(err)
	assert.Equal(t, pluginv1.CodePrecondition, e.Code, "%v", e)
	assert.Contains(t, e.Message, "302")
	assert.NotContains(t, fmt.Sprintf("%+v", *e), canary)
}

func ca(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// TestServers: a URL with two meanings is refused.
func TestServers(t *testing.T) {
	t.Parallel()
	cloudtest.OneMeaning(t, func(server string) (*url.URL, bool) {
		at, isHTTPS := strings.CutPrefix(server, "https://")
		p, all := parse("spec.uri", "kube://"+at+"/a/b/c")
		return p.server, isHTTPS && len(all) == 0
	})
}
