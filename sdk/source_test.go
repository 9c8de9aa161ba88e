package sdk_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// remote returns a document of the contract's version with this kind and spec.
func remote(kind, spec string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"name":"x"},"spec":%s}`, v1alpha1.APIVersion, kind, spec)
}

// sourceOf returns a source of this machine's operating system.
func sourceOf(s sdk.Source) pluginv1.Source {
	s.Name, s.Version, s.OS = "tester", "1.2.3", []string{machinetest.Target().OS}
	return sdk.NewSource(s, machinetest.Target().OS)
}

// fetchOf returns the Fetch of a source that opens each of these bodies in turn, the last one forever.
func fetchOf(bodies ...io.Reader) func(context.Context, sdk.Location) (sdk.Object, error) {
	at := -1
	return func(context.Context, sdk.Location) (sdk.Object, error) {
		at = min(at+1, len(bodies)-1)
		return sdk.Object{Revision: fmt.Sprint("v", at+1), Body: io.NopCloser(bodies[at])}, nil
	}
}

func fetching(most int64, retryFor time.Duration) pluginv1.FetchRequest {
	return pluginv1.FetchRequest{
		Document: remote("RemoteConfig", `{"provider":"tester","uri":"x://a"}`), Target: machinetest.Target(),
		MaxBytes: most, RetryFor: retryFor,
	}
}

// fetched is what arrives of an object, as the host reads it.
type fetched struct {
	begins   int
	revision string
	data     []byte
}

func fetchFrom(t *testing.T, s pluginv1.Source, r pluginv1.FetchRequest) (fetched, error) {
	t.Helper()
	var got fetched
	err := s.Fetch(t.Context(), r, func(c pluginv1.Chunk) error {
		if c.Begin {
			got = fetched{begins: got.begins + 1, revision: c.Revision}
			return nil
		}
		assert.NotEmpty(t, c.Data)
		assert.LessOrEqual(t, len(c.Data), pluginv1.MaxChunkBytes)
		got.data = append(got.data, c.Data...)
		return nil
	})
	return got, err
}

// failure requires an error with this code and text, and returns it.
func failure(t *testing.T, err error, code pluginv1.Code, says string) *pluginv1.Error {
	t.Helper()
	var e *pluginv1.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, code, e.Code, "%v", e)
	require.Contains(t, e.Error(), says)
	return e
}

func requireCode(t *testing.T, err error, code pluginv1.Code, says string) {
	t.Helper()
	_ = failure(t, err, code, says) // it has failed the test
}

// violated are the fields of the violations of an InvalidConfig.
func violated(t *testing.T, err error) []string {
	t.Helper()
	var out []string
	for _, v := range failure(t, err, pluginv1.CodeInvalidConfig, "").Violations {
		out = append(out, v.Field)
	}
	return out
}

func TestDescribeSource(t *testing.T) {
	t.Parallel()
	about := pluginv1.DescribeRequest{Target: machinetest.Target(), JSONSchema: true}
	secrets := []string{"spec.providerConfig.token"}
	d, err := sourceOf(sdk.Source{Secrets: secrets, Fetch: fetchOf(strings.NewReader(""))}).Describe(t.Context(), about)
	require.NoError(t, err)
	require.Len(t, d.Kinds, 1)
	assert.Equal(t, "RemoteConfig", d.Kinds[0].Kind)
	assert.Equal(t, v1alpha1.APIVersion, d.Kinds[0].APIVersion)
	assert.Equal(t, secrets, d.Kinds[0].SecretFields)
	assert.True(t, json.Valid(d.Kinds[0].JSONSchema))
	assert.Empty(t, d.Capabilities)
	assert.Equal(t, pluginv1.FitnessInstalled, d.Fitness)

	about.JSONSchema, about.Target.OS = false, "plan9"
	d, err = sourceOf(sdk.Source{Report: func(context.Context, sdk.Location, sdk.RunReport) error { return nil }}).Describe(t.Context(), about)
	require.NoError(t, err)
	require.Len(t, d.Kinds, 2)
	assert.Equal(t, "ReportTarget", d.Kinds[1].Kind)
	assert.Empty(t, d.Kinds[0].JSONSchema)
	assert.Equal(t, []string{"report"}, d.Capabilities)
	assert.Equal(t, pluginv1.FitnessUnsupported, d.Fitness)
}

// TestSourceValidates: every violation is answered at once, and nothing is opened.
func TestSourceValidates(t *testing.T) {
	t.Parallel()
	type config struct {
		Token *v1alpha1.Secret `json:"token,omitempty"`
	}
	opened := false
	s := sourceOf(sdk.Source{
		Validate: func(l sdk.Location) []sdk.Violation {
			_, violations := sdk.ProviderConfig[config](l.ProviderConfig)
			if !strings.HasPrefix(l.URI, "x://") {
				violations = append(violations, sdk.Violation{Field: l.Field, Message: "must begin with x://"})
			}
			return violations
		},
		Fetch:  func(context.Context, sdk.Location) (sdk.Object, error) { opened = true; return sdk.Object{}, nil },
		Report: func(context.Context, sdk.Location, sdk.RunReport) error { opened = true; return nil },
	})
	type fields = []string
	for spec, want := range map[string]struct{ fetch, report []string }{
		`{"provider":"tester","uri":"x://a"}`:                                                     {nil, nil},
		`{"provider":"tester","uri":"x://a","report":{"uri":"y://b"}}`:                            {fields{"spec.report.uri"}, fields{"spec.report.uri"}},
		`{"provider":"tester"}`:                                                                   {fields{"spec.uri"}, fields{"spec.uri"}},
		`{"provider":"tester","uri":" "}`:                                                         {fields{"spec.uri"}, fields{"spec.uri"}},
		`{"provider":"tester","uri":5,"providerConfig":{"a":1}}`:                                  {fields{"spec.uri", "spec.providerConfig.a"}, fields{"spec.uri", "spec.providerConfig.a"}},
		`{"provider":"tester","providerConfig":{"token":"c4n4ry"},"x":1}`:                         {fields{"spec.x", "spec.uri", "spec.providerConfig.token"}, fields{"spec.x", "spec.uri", "spec.providerConfig.token"}},
		`{"provider":"tester","uri":"z","sha256":"ABC"}`:                                          {fields{"spec.sha256", "spec.uri"}, fields{"spec.sha256", "spec.uri"}},
		`{"provider":"tester","uri":"x://a","sha256":"` + strings.Repeat("0f", 32) + `"}`:         {nil, nil},
		`{"provider":"tester","uri":"x://a","sha256":"` + strings.Repeat("0f", 32) + `0"}`:        {fields{"spec.sha256"}, fields{"spec.sha256"}},
		`{"provider":"tester","uri":"x://a","report":{"uri":"x://b","disabled":true,"when":"x"}}`: {fields{"spec.report.when"}, fields{"spec.report.when"}},
	} {
		r := fetching(0, 0)
		r.Document, r.ValidateOnly = remote("RemoteConfig", spec), true
		_, fetchErr := fetchFrom(t, s, r)
		reportErr := s.Report(t.Context(), pluginv1.ReportRequest{Document: r.Document, Target: r.Target, ValidateOnly: true})
		for call, c := range map[string]struct {
			err  error
			want []string
		}{"Fetch": {fetchErr, want.fetch}, "Report": {reportErr, want.report}} {
			if c.want == nil {
				require.NoError(t, c.err, "%s of %s", call, spec)
				continue
			}
			assert.Equal(t, c.want, violated(t, c.err), "%s of %s", call, spec)
			assert.NotContains(t, fmt.Sprintf("%+v", *pluginv1.AsError(c.err)), "c4n4ry")
		}
	}
	assert.False(t, opened)
}

// TestSourceRefusals: another system, and a kind that is not a source's.
func TestSourceRefusals(t *testing.T) {
	t.Parallel()
	s := sourceOf(sdk.Source{Fetch: fetchOf(strings.NewReader("a"))})
	r := fetching(1, 0)
	r.Target.OS = "plan9"
	_, err := fetchFrom(t, s, r)
	requireCode(t, err, pluginv1.CodeUnsupported, "plan9")
	for _, kind := range []string{"Sysctl", "ReportTarget", "EncryptedConfig"} {
		r := fetching(1, 0)
		r.Document = remote(kind, `{"provider":"tester","uri":"x://a"}`)
		_, err = fetchFrom(t, s, r)
		assert.Equal(t, "kind", failure(t, err, pluginv1.CodeUnsupported, kind).Violations[0].Field)
	}
	r = fetching(1, 0)
	r.Document = []byte("c4n4ry")
	_, err = fetchFrom(t, s, r)
	assert.NotContains(t, failure(t, err, pluginv1.CodeInternal, "not JSON").Error(), "c4n4ry")
	err = s.Report(t.Context(), pluginv1.ReportRequest{Document: fetching(0, 0).Document, Target: machinetest.Target()})
	requireCode(t, err, pluginv1.CodeUnsupported, "keeps no reports")
}

// TestFetch: an object arrives as it is, up to the limit and not a byte more.
func TestFetch(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 128<<10 - 1, 128 << 10, 128<<10 + 1, 1<<20 + 7} {
		object := bytes.Repeat([]byte("\x00\xffab"), size/4+1)[:size]
		for name, reader := range map[string]func(io.Reader) io.Reader{
			"at once": func(r io.Reader) io.Reader { return r }, "by half": iotest.HalfReader, "with its end": iotest.DataErrReader,
		} {
			t.Run(fmt.Sprintf("%d bytes %s", size, name), func(t *testing.T) {
				t.Parallel()
				got, err := fetchFrom(t, sourceOf(sdk.Source{Fetch: fetchOf(reader(bytes.NewReader(object)))}), fetching(int64(size), 0))
				require.NoError(t, err)
				assert.True(t, bytes.Equal(object, got.data))
				assert.Equal(t, "v1", got.revision)
				_, err = fetchFrom(t, sourceOf(sdk.Source{Fetch: fetchOf(reader(bytes.NewReader(object)))}), fetching(int64(size)-1, time.Hour))
				e := failure(t, err, pluginv1.CodePrecondition, fmt.Sprintf("larger than %d bytes", size-1))
				assert.True(t, e.Final)
				assert.Equal(t, "spec.uri", e.Violations[0].Field)
			})
		}
	}
}

// closing counts how often a body is closed.
type closing struct {
	io.Reader
	closed *int
}

func (c closing) Close() error {
	*c.closed++
	return nil
}

func TestBodiesAreClosed(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]io.Reader{"whole": strings.NewReader("a"), "too long": strings.NewReader("ab"), "broken": iotest.ErrReader(io.ErrUnexpectedEOF)} {
		closed := 0
		_, _ = fetchFrom(t, sourceOf(sdk.Source{Fetch: func(context.Context, sdk.Location) (sdk.Object, error) {
			return sdk.Object{Body: closing{body, &closed}}, nil
		}}), fetching(1, 0))
		assert.Equal(t, 1, closed, name)
	}
}

// TestFailuresOfASource: what can pass is Retry, and a certificate is not.
func TestFailuresOfASource(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for name, tt := range map[string]struct {
		err  error
		code pluginv1.Code
	}{
		"no such name":             {&net.DNSError{Err: "no such host", Name: "a", IsNotFound: true}, pluginv1.CodeRetry},
		"no name server":           {&net.DNSError{Err: "server misbehaving", IsTemporary: true}, pluginv1.CodeRetry},
		"dial":                     {refused, pluginv1.CodeRetry},
		"reset":                    {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, pluginv1.CodeRetry},
		"short body":               {io.ErrUnexpectedEOF, pluginv1.CodeRetry},
		"something of a library":   {errors.New("stream closed"), pluginv1.CodeRetry},
		"an own error":             {sdk.Precondition("the object is locked", "unlock it"), pluginv1.CodePrecondition},
		"an own defect":            {pluginv1.AsError(errors.New("index out of range")), pluginv1.CodeInternal},
		"an expired certificate":   {x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.Expired}, pluginv1.CodePrecondition},
		"an unknown authority":     {x509.UnknownAuthorityError{}, pluginv1.CodePrecondition},
		"a certificate of another": {x509.HostnameError{Certificate: &x509.Certificate{}, Host: "a"}, pluginv1.CodePrecondition},
	} {
		_, err := fetchFrom(t, sourceOf(sdk.Source{Fetch: fetchOf(iotest.ErrReader(tt.err))}), fetching(1, 0))
		requireCode(t, err, tt.code, "")
		if name == "short body" || name == "something of a library" {
			assert.Contains(t, err.Error(), "ended before it was complete", name)
			continue
		}
		open := func(context.Context, sdk.Location) (sdk.Object, error) { return sdk.Object{}, tt.err }
		_, err = fetchFrom(t, sourceOf(sdk.Source{Fetch: open}), fetching(1, 0))
		requireCode(t, err, tt.code, "")
	}
}

// TestCertificateIsNotTriedAgain, with a server whose authority the client does not trust.
func TestCertificateIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = quiet()
	server.StartTLS()
	t.Cleanup(server.Close)
	tries := 0
	s := sourceOf(sdk.Source{Fetch: func(ctx context.Context, _ sdk.Location) (sdk.Object, error) {
		tries++
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			err = answer.Body.Close()
		}
		return sdk.Object{}, err
	}})
	_, err := fetchFrom(t, s, fetching(1, time.Hour))
	e := failure(t, err, pluginv1.CodePrecondition, "certificate")
	assert.Contains(t, e.Hint, "certificate authority")
	assert.Equal(t, 1, tries)
}

func TestAnswered(t *testing.T) {
	t.Parallel()
	_, err := fetchFrom(t, sourceOf(sdk.Source{Fetch: func(context.Context, sdk.Location) (sdk.Object, error) {
		return sdk.Object{}, sdk.Answered(sdk.Precondition("there is no such object", "check spec.uri"), http.StatusNotFound)
	}}), fetching(1, time.Hour))
	assert.Equal(t, map[string]string{pluginv1.FactStatus: "404"}, failure(t, err, pluginv1.CodePrecondition, "no such object").Facts)
}

// TestReport: the destination of a report by the kind and the fields of the document.
func TestReport(t *testing.T) {
	t.Parallel()
	type report struct {
		sdk.Location
		sdk.RunReport
	}
	var got report
	s := sourceOf(sdk.Source{Report: func(_ context.Context, l sdk.Location, r sdk.RunReport) error {
		got = report{l, r}
		return nil
	}})
	config := json.RawMessage(`{"a":1}`)
	run := sdk.RunReport{Body: []byte(`{"outcome":"Succeeded"}`), Sequence: 7}
	for name, tt := range map[string]struct {
		doc  []byte
		want sdk.Location
	}{
		"beside the object": {
			remote("RemoteConfig", `{"provider":"tester","uri":"x://a","providerConfig":{"a":1}}`),
			sdk.Location{URI: "x://a", Field: "spec.uri", Beside: true, ProviderConfig: config},
		},
		"a report without a destination": {
			remote("RemoteConfig", `{"provider":"tester","uri":"x://a","report":{}}`),
			sdk.Location{URI: "x://a", Field: "spec.uri", Beside: true},
		},
		"elsewhere": {
			remote("RemoteConfig", `{"provider":"tester","uri":"x://a","report":{"uri":"x://b"}}`),
			sdk.Location{URI: "x://b", Field: "spec.report.uri"},
		},
		"of an inline stream": {
			remote("ReportTarget", `{"provider":"tester","uri":"x://c","providerConfig":{"a":1}}`),
			sdk.Location{URI: "x://c", Field: "spec.uri", ProviderConfig: config},
		},
	} {
		got = report{}
		require.NoError(t, s.Report(t.Context(), pluginv1.ReportRequest{
			Document: tt.doc, Target: machinetest.Target(), Report: run.Body, Sequence: run.Sequence,
		}), name)
		tt.want.Target = machinetest.Target()
		assert.Equal(t, report{tt.want, run}, got, name)
	}
	failing := sourceOf(sdk.Source{Report: func(context.Context, sdk.Location, sdk.RunReport) error {
		return &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}})
	requireCode(t, failing.Report(t.Context(), pluginv1.ReportRequest{Document: fetching(0, 0).Document, Target: machinetest.Target()}), pluginv1.CodeRetry, "")
}

// TestSourceOverTheWire: an object that is begun again, its limit, and a cancelled pause, as the host has them.
func TestSourceOverTheWire(t *testing.T) {
	t.Parallel()
	whole := strings.Repeat("whole", 1<<20)
	broken := io.MultiReader(strings.NewReader(whole[:1<<20]), iotest.ErrReader(io.ErrUnexpectedEOF))
	client := connect(t, sourceOf(sdk.Source{Fetch: fetchOf(broken, strings.NewReader(whole))}))
	got, err := fetchFrom(t, client, fetching(int64(len(whole)), 30*time.Second))
	require.NoError(t, err)
	assert.Equal(t, 2, got.begins)
	assert.True(t, whole == string(got.data))

	client = connect(t, sourceOf(sdk.Source{Fetch: fetchOf(strings.NewReader(whole))}))
	_, err = fetchFrom(t, client, fetching(int64(len(whole))-1, 0))
	assert.True(t, failure(t, err, pluginv1.CodePrecondition, "larger than").Final)

	ctx, cancel := context.WithCancel(t.Context())
	client = connect(t, sourceOf(sdk.Source{Fetch: func(context.Context, sdk.Location) (sdk.Object, error) {
		cancel()
		return sdk.Object{}, sdk.Retry(time.Hour, "away")
	}}))
	err = client.Fetch(ctx, fetching(1, 24*time.Hour), func(pluginv1.Chunk) error { return nil })
	require.ErrorIs(t, err, context.Canceled)
}
