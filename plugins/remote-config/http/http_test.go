package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
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
	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/plugins/internal/cloud/cloudtest"
	"github.com/machineadm/machineadm/sdk"
)

var update = flag.Bool("update", false, "renew the golden files")

const canary = "c4n4ry-of-the-document"

// written is a RemoteConfig with this spec, or a ReportTarget.
func written(t testing.TB, kind string, spec any) []byte {
	t.Helper()
	data, err := json.Marshal(map[string]any{
		"apiVersion": "machineadm.cluster.x-k8s.io/v1alpha1", "kind": kind, "metadata": map[string]any{"name": "a"}, "spec": spec,
	})
	require.NoError(t, err)
	return data
}

func here() target.Target { return target.Target{OS: runtime.GOOS} }

// fetched fetches the object of a RemoteConfig.
func fetched(ctx context.Context, t testing.TB, spec any) (data []byte, revision string, err error) {
	t.Helper()
	err = sdk.NewSource(source(), runtime.GOOS).Fetch(ctx, pluginv1.FetchRequest{
		Document: written(t, "RemoteConfig", spec), Target: here(), MaxBytes: 16 << 20,
	}, func(c pluginv1.Chunk) error {
		if c.Begin {
			data, revision = nil, c.Revision
		}
		data = append(data, c.Data...)
		return nil
	})
	return data, revision, err
}

func serve(t testing.TB, handler http.HandlerFunc) (uri string, config map[string]any) {
	t.Helper()
	s := httptest.NewTLSServer(handler)
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return s.URL, map[string]any{"ca": string(ca)}
}

func secret(text string) map[string]any { return map[string]any{"value": text} }

// TestFetch: credentials reach the server, and the revision is the ETag or the time of the last change.
func TestFetch(t *testing.T) {
	t.Parallel()
	uri, config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if r.URL.Path == "/etag" {
			w.Header().Set("ETag", `"1"`)
		}
		w.Header().Set("Last-Modified", "Mon, 23 Nov 2026 18:00:00 GMT")
		_, _ = fmt.Fprint(w, r.Method, " ", r.Header.Get("Authorization"), " ", user, ":", password, " ", r.Header.Get("X-Key"))
	})
	config["bearer"] = secret("t0ken")
	config["headers"] = map[string]any{"x-key": secret("k3y")}
	data, revision, err := fetched(t.Context(), t, map[string]any{"provider": "http", "uri": uri + "/etag", "providerConfig": config})
	require.NoError(t, err)
	assert.Equal(t, "GET Bearer t0ken : k3y", string(data))
	assert.Equal(t, `"1"`, revision)
	delete(config, "bearer")
	delete(config, "headers")
	config["basic"] = map[string]any{"username": "me", "password": secret("p:w")}
	data, revision, err = fetched(t.Context(), t, map[string]any{"provider": "http", "uri": uri, "providerConfig": config})
	require.NoError(t, err)
	assert.Equal(t, "GET Basic bWU6cDp3 me:p:w ", string(data))
	assert.Equal(t, "Mon, 23 Nov 2026 18:00:00 GMT", revision)
}

// TestPlain: plain http serves an object whose digest the host verifies.
func TestPlain(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "text") }))
	t.Cleanup(s.Close)
	digest := sha256.Sum256([]byte("text"))
	data, _, err := fetched(t.Context(), t, map[string]any{"provider": "http", "uri": s.URL, "sha256": hex.EncodeToString(digest[:])})
	require.NoError(t, err)
	assert.Equal(t, "text", string(data))
}

// TestTooLarge: an object larger than the host's limit ends the transfer, whether or not its size is known.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	part := bytes.Repeat([]byte("x"), 64<<10)
	uri, config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		size := 17 << 20
		if r.URL.Path == "/17MiB" {
			w.Header().Set("Content-Length", fmt.Sprint(size))
		}
		for n := 0; r.URL.Path == "/endless" || n < size; n += len(part) {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	})
	for _, path := range []string{"/17MiB", "/chunked", "/endless"} {
		_, _, err := fetched(t.Context(), t, map[string]any{"provider": "http", "uri": uri + path, "providerConfig": config})
		e := pluginv1.AsError(err)
		assert.Equal(t, pluginv1.CodePrecondition, e.Code, "%s: %v", path, err)
		assert.True(t, e.Final)
		assert.Contains(t, e.Message, "larger than 16777216 bytes")
	}
}

// TestReport: one POST with the number of the report, which is not redirected.
func TestReport(t *testing.T) {
	t.Parallel()
	requests := make(chan string, 10)
	uri, config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		requests <- fmt.Sprint(r.Method, r.URL.Path, " ", r.Header.Get("Content-Type"), " ", r.Header.Get("Machineadm-Sequence"), " ",
			r.Header.Get("Authorization"), " ", string(body))
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/", http.StatusTemporaryRedirect)
		case "/busy":
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	})
	config["bearer"] = secret("t0ken")
	report := func(kind string, spec map[string]any) *pluginv1.Error {
		t.Helper()
		spec["provider"], spec["providerConfig"] = "http", config
		err := sdk.NewSource(source(), runtime.GOOS).Report(t.Context(), pluginv1.ReportRequest{
			Document: written(t, kind, spec), Target: here(), Report: []byte("{}"), Sequence: 1 << 60,
		})
		if err == nil {
			return nil
		}
		return pluginv1.AsError(err)
	}
	const sent = " application/json 1152921504606846976 Bearer t0ken {}"
	assert.Nil(t, report("ReportTarget", map[string]any{"uri": uri + "/in"}))
	assert.Equal(t, "POST/in"+sent, <-requests)
	assert.Nil(t, report("RemoteConfig", map[string]any{"uri": uri, "report": map[string]any{"uri": uri + "/out"}}))
	assert.Equal(t, "POST/out"+sent, <-requests)
	e := report("RemoteConfig", map[string]any{"uri": uri})
	require.NotNil(t, e)
	assert.Equal(t, pluginv1.CodeUnsupported, e.Code)
	e = report("ReportTarget", map[string]any{"uri": uri + "/moved"})
	require.NotNil(t, e)
	assert.Equal(t, pluginv1.CodePrecondition, e.Code)
	e = report("ReportTarget", map[string]any{"uri": uri + "/busy"})
	require.NotNil(t, e)
	assert.Equal(t, pluginv1.CodeRetry, e.Code)
	assert.Len(t, requests, 2, "one request for each call")
}

// TestSigned: the object and its report each have a query of their own, which no error quotes, and the report is put.
func TestSigned(t *testing.T) {
	t.Parallel()
	requests := make(chan string, 10)
	uri, config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests <- r.Method + " " + r.RequestURI + " " + r.Header.Get("X-Kind")
		w.WriteHeader(http.StatusForbidden)
	})
	config["query"], config["headers"] = secret("sig=a%2B"+canary), map[string]any{"X-Kind": secret("Block")}
	config["report"] = map[string]any{"method": "PUT", "query": secret("sig=b" + canary)}
	spec := map[string]any{"provider": "http", "uri": uri + "/a", "report": map[string]any{"uri": uri + "/b"}, "providerConfig": config}
	_, _, failure := fetched(t.Context(), t, spec)
	err := sdk.NewSource(source(), runtime.GOOS).Report(t.Context(), pluginv1.ReportRequest{
		Document: written(t, "RemoteConfig", spec), Target: here(), Report: []byte("{}"), Sequence: 1,
	})
	assert.Equal(t, "GET /a?sig=a%2B"+canary+" Block", <-requests)
	assert.Equal(t, "PUT /b?sig=b"+canary+" Block", <-requests)
	for _, err := range []error{failure, err} {
		assert.Contains(t, pluginv1.AsError(err).Message, "403")
		assert.NotContains(t, fmt.Sprintf("%+v", *pluginv1.AsError(err)), canary)
	}
}

// TestDescribe: every secret of the configuration is declared.
func TestDescribe(t *testing.T) {
	t.Parallel()
	d, err := sdk.NewSource(source(), runtime.GOOS).Describe(t.Context(), pluginv1.DescribeRequest{Target: here()})
	require.NoError(t, err)
	assert.Equal(t, []string{pluginv1.CapabilityReport, pluginv1.CapabilityStore}, d.Capabilities)
	require.Len(t, d.Kinds, 2)
	for _, kind := range d.Kinds {
		assert.Equal(t, []string{
			"spec.providerConfig.clientCertificate.key", "spec.providerConfig.bearer", "spec.providerConfig.basic.password",
			"spec.providerConfig.headers[]", "spec.providerConfig.query", "spec.providerConfig.report.query",
			"spec.providerConfig.read.clientCertificate.key", "spec.providerConfig.read.bearer", "spec.providerConfig.read.basic.password",
			"spec.providerConfig.read.headers[]",
		}, kind.SecretFields)
	}
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
		spec := strings.TrimSpace(line)
		fmt.Fprintf(&got, "%s\n%s\n", spec, violations(t, json.RawMessage(strings.ReplaceAll(spec, "CANARY", canary))))
	}
	assert.NotContains(t, got.String(), canary)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got.String()), 0o644)) //nolint:gosec // a golden file
	}
	assert.Equal(t, string(text), got.String())
}

// violations validates a spec as for a fetch, and as for a report if it has other violations then.
func violations(t testing.TB, spec json.RawMessage) string {
	t.Helper()
	s := sdk.NewSource(source(), runtime.GOOS)
	show := func(call string, err error) string {
		var out strings.Builder
		for _, v := range violationsOf(err) {
			fmt.Fprintf(&out, "  %s%s: %s (%s)\n", call, v.Field, v.Message, v.Hint)
		}
		return out.String()
	}
	doc := written(t, "RemoteConfig", spec)
	fetch := s.Fetch(t.Context(), pluginv1.FetchRequest{Document: doc, Target: here(), ValidateOnly: true}, nil)
	report := s.Report(t.Context(), pluginv1.ReportRequest{Document: doc, Target: here(), ValidateOnly: true})
	if show("", fetch) == show("", report) {
		return show("", fetch)
	}
	return show("fetch: ", fetch) + show("report: ", report)
}

func violationsOf(err error) []sdk.Violation {
	if err == nil {
		return nil
	}
	return pluginv1.AsError(err).Violations
}

// FuzzViolations: no providerConfig makes the plugin panic, or quote a secret.
func FuzzViolations(f *testing.F) {
	f.Add(`{"bearer":{"value":"c4n4ry"},"basic":{"username":"c4n4ry:","password":{"value":""}},"pins":["c4n4ry"],"ca":"c4n4ry"}`)
	f.Add(`{"headers":{"a b":{"value":"c4n4ry\n"},"Host":{"value":"c4n4ry"}},"clientCertificate":{"certificate":"c4n4ry","key":{"value":"c4n4ry"}}}`)
	f.Fuzz(func(t *testing.T, config string) {
		if !json.Valid([]byte(config)) {
			return
		}
		spec, err := json.Marshal(map[string]any{"provider": "http", "uri": "http://a.example/c4n4ry", "providerConfig": json.RawMessage(config)})
		require.NoError(t, err)
		err = sdk.NewSource(source(), runtime.GOOS).Fetch(t.Context(), pluginv1.FetchRequest{
			Document: written(t, "RemoteConfig", json.RawMessage(spec)), Target: here(), ValidateOnly: true,
		}, nil)
		e := pluginv1.AsError(err)
		require.Equal(t, pluginv1.CodeInvalidConfig, e.Code, "%v", e)
		for _, v := range e.Violations {
			require.NotContains(t, v.Message+v.Hint, "c4n4ry")
		}
	})
}

// TestServers: a URL with two meanings is refused.
func TestServers(t *testing.T) {
	t.Parallel()
	cloudtest.OneMeaning(t, func(server string) (*url.URL, bool) {
		u, all := cloud.ParseURL("", server+"/x", true, false)
		return u, len(all) == 0 && len(validate(sdk.Location{Field: "spec.uri", URI: server + "/x", SHA256: "0"})) == 0
	})
}
