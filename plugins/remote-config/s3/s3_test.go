package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/plugins/internal/cloud/aws"
	"github.com/machineadm/machineadm/sdk"
)

var update = flag.Bool("update", false, "renew the golden files")

const canary = "c4n4ry-of-the-document"

func here() target.Target { return target.Target{OS: runtime.GOOS} }

func written(t testing.TB, kind string, spec any) []byte {
	t.Helper()
	data, err := json.Marshal(map[string]any{
		"apiVersion": "machineadm.cluster.x-k8s.io/v1alpha1", "kind": kind, "metadata": map[string]any{"name": "a"}, "spec": spec,
	})
	require.NoError(t, err)
	return data
}

// young is a machine whose plugin has just started.
func young() aws.Machine { return aws.Machine{Now: time.Now, Started: time.Now()} }

func old() aws.Machine { return aws.Machine{Now: time.Now, Started: time.Now().Add(-61 * time.Second)} }

func serve(t testing.TB, handler http.HandlerFunc) map[string]any {
	t.Helper()
	s := httptest.NewTLSServer(handler)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return map[string]any{
		"ca": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})), "endpoint": s.URL, "region": "eu-central-1",
		"accessKeyID": "AKID", "secretAccessKey": map[string]any{"value": canary}, "sessionToken": map[string]any{"value": canary},
	}
}

func fetched(ctx context.Context, t testing.TB, m aws.Machine, retry time.Duration, config map[string]any) (data []byte, revision string, err error) {
	t.Helper()
	err = sdk.NewSource(source(m), runtime.GOOS).Fetch(ctx, pluginv1.FetchRequest{
		Document: written(t, "RemoteConfig", map[string]any{"provider": "s3", "uri": "s3://bucket/c4n4ry key", "providerConfig": config}),
		Target:   here(), MaxBytes: 16 << 20, RetryFor: retry,
	}, func(c pluginv1.Chunk) error {
		if c.Begin {
			data, revision = nil, c.Revision
		}
		data = append(data, c.Data...)
		return nil
	})
	return data, revision, err
}

func refused(t testing.TB, err error, code pluginv1.Code, text string) {
	t.Helper()
	require.Error(t, err)
	e := pluginv1.AsError(err)
	assert.Equal(t, code, e.Code, "%v", e)
	assert.Contains(t, e.Message, text)
	assert.NotContains(t, fmt.Sprintf("%+v", *e), "c4n4ry")
}

// TestSpreading: an object that is refused at first is fetched by the same call.
func TestSpreading(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/bucket/c4n4ry%20key?versionId=a%2Bb", r.RequestURI)
		assert.Equal(t, canary, r.Header.Get("X-Amz-Security-Token"))
		switch requests.Add(1) {
		case 1:
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "<Error><Code>AccessDenied</Code><Message>"+canary+"</Message></Error>")
		case 2:
			w.WriteHeader(http.StatusNotFound)
		default:
			w.Header().Set("ETag", `"1"`)
			w.Header().Set("X-Amz-Version-Id", "null")
			_, _ = io.WriteString(w, "stream")
		}
	})
	config["versionId"] = "a+b"
	data, revision, err := fetched(t.Context(), t, young(), 20*time.Second, config)
	require.NoError(t, err)
	assert.Equal(t, "stream", string(data))
	assert.Equal(t, `"1"`, revision)
	requests.Store(0)
	_, _, err = fetched(t.Context(), t, old(), 20*time.Second, config)
	refused(t, err, pluginv1.CodePrecondition, "AccessDenied")
	assert.EqualValues(t, 1, requests.Load())
}

// TestBodies: an object is complete or refused, and larger ones than the limit end.
func TestBodies(t *testing.T) {
	t.Parallel()
	object := bytes.Repeat([]byte("0123456789"), 30<<10)
	for tenth := range 10 {
		config := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(object)))
			_, _ = w.Write(object[:len(object)*tenth/10])
		})
		_, _, err := fetched(t.Context(), t, old(), 0, config)
		refused(t, err, pluginv1.CodeRetry, "ended before")
	}
	config := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(17<<20))
		for range 17 {
			_, _ = w.Write(make([]byte, 1<<20)) // the client leaves
		}
	})
	_, _, err := fetched(t.Context(), t, old(), 0, config)
	refused(t, err, pluginv1.CodePrecondition, "larger than 16777216 bytes")
}

// TestReport: each answer of the store leads to one conditional write, or to none.
func TestReport(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		head     int
		sequence string
		put      int
		want     string // the condition; "" if nothing is written
		code     pluginv1.Code
	}{
		"none":                     {404, "", 200, "If-None-Match *", 0},
		"none, without the list":   {403, "", 200, "If-None-Match *", 0},
		"one that cannot be read":  {403, "", 412, "If-None-Match *", pluginv1.CodeRetry},
		"older":                    {200, "6", 200, `If-Match "e"`, 0},
		"the same":                 {200, "7", 200, "", 0},
		"newer":                    {200, "8", 200, "", 0},
		"newer, by digits":         {200, "10", 200, "", 0},
		"of another program":       {200, "", 200, `If-Match "e"`, 0},
		"written in the meantime":  {200, "6", 412, `If-Match "e"`, pluginv1.CodeRetry},
		"written at the same time": {200, "6", 409, `If-Match "e"`, pluginv1.CodeRetry},
		"refused":                  {404, "", 403, "If-None-Match *", pluginv1.CodePrecondition},
		"busy":                     {503, "", 200, "", pluginv1.CodeRetry},
		"no longer authenticated":  {400, "", 200, "", pluginv1.CodePrecondition},
	} {
		var condition, body string
		config := serve(t, func(w http.ResponseWriter, r *http.Request) {
			assert.Equal(t, "/bucket/a/b.report.json", r.RequestURI)
			if r.Method == http.MethodHead {
				w.Header().Set("ETag", `"e"`)
				if test.sequence != "" {
					w.Header().Set("X-Amz-Meta-Machineadm-Sequence", test.sequence)
				}
				w.WriteHeader(test.head)
				return
			}
			data, err := io.ReadAll(r.Body)
			assert.NoError(t, err)
			body = r.Method + " " + r.Header.Get("Content-Type") + " " + r.Header.Get("X-Amz-Meta-Machineadm-Sequence") + " " + string(data)
			for _, name := range []string{"If-Match", "If-None-Match"} {
				if value := r.Header.Get(name); value != "" {
					condition += name + " " + value
				}
			}
			w.WriteHeader(test.put)
			_, _ = io.WriteString(w, map[int]string{
				412: "<Error><Code>PreconditionFailed</Code></Error>", 409: "<Error><Code>ConditionalRequestConflict</Code></Error>",
			}[test.put])
		})
		config["versionId"] = "of-the-object"
		err := sdk.NewSource(source(young()), runtime.GOOS).Report(t.Context(), pluginv1.ReportRequest{
			Document: written(t, "RemoteConfig", map[string]any{"provider": "s3", "uri": "s3://bucket/a/b", "providerConfig": config}),
			Target:   here(), Report: []byte("{}"), Sequence: 7,
		})
		assert.Equal(t, test.want, condition, name)
		if test.want != "" {
			assert.Equal(t, "PUT application/json 7 {}", body, name)
		}
		switch {
		case test.code == 0:
			require.NoError(t, err, name)
		case name == "refused": // by a plugin that has just started
			refused(t, err, pluginv1.CodeRetry, "403")
		default:
			refused(t, err, test.code, "answers with the status")
		}
	}
}

// TestHosts: the bucket is in the name of the host unless no certificate can be for that.
func TestHosts(t *testing.T) {
	t.Parallel()
	for want, test := range map[string]struct{ uri, config string }{
		"https://bucket.s3.eu-central-1.amazonaws.com/k":                                        {"s3://bucket/k", `{"region":"eu-central-1"}`},
		"https://s3.cn-north-1.amazonaws.com.cn/bucket/k":                                       {"s3://bucket/k", `{"region":"cn-north-1","pathStyle":true}`},
		"https://s3.us-west-2.amazonaws.com/us-west-2.cluster-api.contoso.com/bootstrap/x.yaml": {"s3://us-west-2.cluster-api.contoso.com/bootstrap/x.yaml", `{"region":"us-west-2"}`},
		"https://bucket.store.example:9000/k":                                                   {"s3://bucket/k", `{"region":"x","endpoint":"https://store.example:9000"}`},
		"https://[2001:db8::1]:9000/bucket/k":                                                   {"s3://bucket/k", `{"region":"x","endpoint":"https://[2001:db8::1]:9000"}`},
		"https://bucket.s3.eu-central-1.amazonaws.com//k/../l":                                  {"s3://bucket//k/../l", `{"region":"eu-central-1"}`},
	} {
		config := strings.TrimSuffix(test.config, "}") + `,"accessKeyID":"A","secretAccessKey":{"value":"s"}}`
		l := sdk.Location{URI: test.uri, Field: "spec.uri", ProviderConfig: json.RawMessage(config)}
		require.Empty(t, validate(l))
		o, err := store{old()}.open(t.Context(), l, "")
		require.NoError(t, err)
		assert.Equal(t, want, o.url.String())
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
		fmt.Fprintln(&got, spec)
		err := sdk.NewSource(source(old()), runtime.GOOS).Fetch(t.Context(), pluginv1.FetchRequest{
			Document: written(t, "RemoteConfig", json.RawMessage(strings.ReplaceAll(spec, "CANARY", canary))), Target: here(), ValidateOnly: true,
		}, nil)
		if err != nil {
			for _, v := range pluginv1.AsError(err).Violations {
				fmt.Fprintf(&got, "  %s: %s (%s)\n", v.Field, v.Message, v.Hint)
			}
		}
		fmt.Fprintln(&got)
	}
	assert.NotContains(t, got.String(), canary)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got.String()), 0o644)) //nolint:gosec // a golden file
	}
	assert.Equal(t, string(text), got.String())
}

// FuzzParse: a location that is accepted gives a URL whose path is the bucket and the key.
func FuzzParse(f *testing.F) {
	for _, uri := range []string{"s3://bucket/key", "s3://a.b-c/ü \U0001f600//../%2e?#", "s3://a@b/k", "s3:///k", "s3://bucket/\x00", "s3://bucket/\xff"} {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		bucket, key, ok := parse(uri)
		if !ok {
			return
		}
		config := json.RawMessage(`{"region":"x","pathStyle":true,"accessKeyID":"A","secretAccessKey":{"value":"s"}}`)
		o, err := store{old()}.open(t.Context(), sdk.Location{URI: uri, Field: "spec.uri", ProviderConfig: config}, "")
		require.NoError(t, err)
		require.Equal(t, "/"+bucket+"/"+key, o.url.Path)
		require.Equal(t, "s3.x.amazonaws.com", o.url.Host)
		require.Equal(t, uri, "s3://"+bucket+"/"+key)
	})
}
