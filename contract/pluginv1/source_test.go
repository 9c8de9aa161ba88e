package pluginv1_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/pluginv1/pb"
	"github.com/machineadm/machineadm/contract/target"
)

// fakeSource is a Source of functions, fakeKeys a KeyProvider; each function is set by the tests that need it.
type fakeSource struct {
	fetch  func(context.Context, pluginv1.FetchRequest, func(pluginv1.Chunk) error) error
	report func(pluginv1.ReportRequest) error
	store  func(pluginv1.StoreRequest) (pluginv1.Stored, error)
	remove func(pluginv1.RemoveRequest) error
}

func (*fakeSource) Describe(context.Context, pluginv1.DescribeRequest) (pluginv1.Description, error) {
	return pluginv1.Description{Name: "n", Version: "v", Capabilities: []string{pluginv1.CapabilityReport}}, nil
}

func (f *fakeSource) Fetch(ctx context.Context, r pluginv1.FetchRequest, send func(pluginv1.Chunk) error) error {
	return f.fetch(ctx, r, send)
}

func (f *fakeSource) Report(_ context.Context, r pluginv1.ReportRequest) error { return f.report(r) }

func (f *fakeSource) Store(_ context.Context, r pluginv1.StoreRequest) (pluginv1.Stored, error) {
	return f.store(r)
}

func (f *fakeSource) Remove(_ context.Context, r pluginv1.RemoveRequest) error { return f.remove(r) }

type fakeKeys struct {
	passphrase func(pluginv1.PassphraseRequest) ([]byte, error)
	made       func(pluginv1.NewPassphraseRequest) (pluginv1.NewPassphrase, error)
}

func (*fakeKeys) Describe(context.Context, pluginv1.DescribeRequest) (pluginv1.Description, error) {
	return pluginv1.Description{Name: "n", Version: "v", Capabilities: []string{pluginv1.CapabilityNewPassphrase}}, nil
}

func (f *fakeKeys) Passphrase(_ context.Context, r pluginv1.PassphraseRequest) ([]byte, error) {
	return f.passphrase(r)
}

func (f *fakeKeys) NewPassphrase(_ context.Context, r pluginv1.NewPassphraseRequest) (pluginv1.NewPassphrase, error) {
	return f.made(r)
}

func serveDescriber(t *testing.T, d pluginv1.Describer) *pluginv1.Client {
	t.Helper()
	return serve(t, func(s grpc.ServiceRegistrar) { pluginv1.Register(s, d) })
}

func noPart(pluginv1.Chunk) error { return nil }

// calls makes every call of Source and KeyProvider and returns their errors.
func calls(t *testing.T, c *pluginv1.Client) map[string]error {
	t.Helper()
	_, passphrase := c.Passphrase(t.Context(), pluginv1.PassphraseRequest{})
	_, made := c.NewPassphrase(t.Context(), pluginv1.NewPassphraseRequest{})
	_, stored := c.Store(t.Context(), pluginv1.StoreRequest{})
	return map[string]error{
		"Store": stored, "Remove": c.Remove(t.Context(), pluginv1.RemoveRequest{}),
		"Fetch": c.Fetch(t.Context(), pluginv1.FetchRequest{}, noPart), "Report": c.Report(t.Context(), pluginv1.ReportRequest{}),
		"Passphrase": passphrase, "NewPassphrase": made,
	}
}

func wholeTarget() target.Target {
	return target.Target{
		OS: "linux", Architecture: "amd64", Distribution: "debian", Like: []string{"x"}, Version: "12", Name: "Debian", Kernel: "6", Hostname: "h",
	}
}

func TestSourceOverTheWire(t *testing.T) {
	t.Parallel()
	fetching := pluginv1.FetchRequest{Document: []byte("{}"), Target: wholeTarget(), MaxBytes: 1 << 40, RetryFor: 90 * time.Second}
	reporting := pluginv1.ReportRequest{Document: []byte("{}"), Target: wholeTarget(), Report: []byte(`{"a":1}`), Sequence: 1<<64 - 1}
	parts := []pluginv1.Chunk{
		{Begin: true, Revision: "1"},
		{Data: []byte("lost")},
		{Begin: true, Revision: `"2"`},
		{Data: make([]byte, pluginv1.MaxChunkBytes)},
		{Data: []byte("end")},
	}
	client := serveDescriber(t, &fakeSource{
		fetch: func(_ context.Context, r pluginv1.FetchRequest, send func(pluginv1.Chunk) error) error {
			assert.Equal(t, fetching, r)
			for _, p := range parts {
				if err := send(p); err != nil {
					return err
				}
			}
			return nil
		},
		report: func(r pluginv1.ReportRequest) error {
			assert.Equal(t, reporting, r)
			return nil
		},
	})
	var got []pluginv1.Chunk
	require.NoError(t, client.Fetch(t.Context(), fetching, func(c pluginv1.Chunk) error {
		got = append(got, c)
		return nil
	}))
	assert.Equal(t, parts, got)
	require.NoError(t, client.Report(t.Context(), reporting))
	d, err := client.Describe(t.Context(), pluginv1.DescribeRequest{})
	require.NoError(t, err)
	assert.Equal(t, []string{"report"}, d.Capabilities)
}

func TestKeyProviderOverTheWire(t *testing.T) {
	t.Parallel()
	asking := pluginv1.PassphraseRequest{Document: []byte("{}"), Target: wholeTarget(), RetryFor: time.Minute}
	making := pluginv1.NewPassphraseRequest{Key: "alias/node", Target: wholeTarget(), ProviderConfig: []byte(`{"region":"x"}`)}
	raw := []byte("\x00\xff not text, and longer than 14 bytes\n")
	made := pluginv1.NewPassphrase{Passphrase: raw, URI: "x://alias/node@1"}
	client := serveDescriber(t, &fakeKeys{
		passphrase: func(r pluginv1.PassphraseRequest) ([]byte, error) {
			assert.Equal(t, asking, r)
			return raw, nil
		},
		made: func(r pluginv1.NewPassphraseRequest) (pluginv1.NewPassphrase, error) {
			assert.Equal(t, making, r)
			return made, nil
		},
	})
	got, err := client.Passphrase(t.Context(), asking)
	require.NoError(t, err)
	assert.Equal(t, raw, got)
	gotMade, err := client.NewPassphrase(t.Context(), making)
	require.NoError(t, err)
	assert.Equal(t, made, gotMade)
}

// TestServicesOfAPlugin: a plugin serves the calls of its own type, and a call of another type is its defect.
func TestServicesOfAPlugin(t *testing.T) {
	t.Parallel()
	unsupported := &pluginv1.Error{Code: pluginv1.CodeUnsupported, Message: "is never called"}
	source := serveDescriber(t, &fakeSource{
		fetch:  func(context.Context, pluginv1.FetchRequest, func(pluginv1.Chunk) error) error { return unsupported },
		report: func(pluginv1.ReportRequest) error { return unsupported },
		store:  func(pluginv1.StoreRequest) (pluginv1.Stored, error) { return pluginv1.Stored{}, unsupported },
		remove: func(pluginv1.RemoveRequest) error { return unsupported },
	})
	keys := serveDescriber(t, &fakeKeys{
		passphrase: func(pluginv1.PassphraseRequest) ([]byte, error) { return nil, unsupported },
		made: func(pluginv1.NewPassphraseRequest) (pluginv1.NewPassphrase, error) {
			return pluginv1.NewPassphrase{}, unsupported
		},
	})
	for name, tt := range map[string]struct {
		client *pluginv1.Client
		serves []string
	}{
		"configurator": {serveFake(t, &fake{}), nil},
		"source":       {source, []string{"Fetch", "Report", "Store", "Remove"}},
		"key provider": {keys, []string{"Passphrase", "NewPassphrase"}},
	} {
		for call, err := range calls(t, tt.client) {
			if slices.Contains(tt.serves, call) {
				assert.Equal(t, unsupported, pluginv1.AsError(err), "%s of a %s", call, name)
				continue
			}
			requireBreach(t, err, "P-1, E-1", call+" answered the status Unimplemented")
		}
	}
	_, err := source.Plan(t.Context(), pluginv1.Request{})
	requireBreach(t, err, "P-1, E-1", "Plan answered the status Unimplemented")
}

// TestErrorsOfSourcesArriveWhole: errors have every field, and a panic shows no value.
func TestErrorsOfSourcesArriveWhole(t *testing.T) {
	t.Parallel()
	const canary = "c4n4ry"
	sent := full(pluginv1.CodeRetry)
	fail := func(err error) map[string]error {
		raise := func() error {
			if err == nil {
				panic(canary)
			}
			return fmt.Errorf("while it worked: %w", err)
		}
		all := calls(t, serveDescriber(t, &fakeSource{
			fetch:  func(context.Context, pluginv1.FetchRequest, func(pluginv1.Chunk) error) error { return raise() },
			report: func(pluginv1.ReportRequest) error { return raise() },
			store:  func(pluginv1.StoreRequest) (pluginv1.Stored, error) { return pluginv1.Stored{}, raise() },
			remove: func(pluginv1.RemoveRequest) error { return raise() },
		}))
		for call, err := range calls(t, serveDescriber(t, &fakeKeys{
			passphrase: func(pluginv1.PassphraseRequest) ([]byte, error) { return nil, raise() },
			made: func(pluginv1.NewPassphraseRequest) (pluginv1.NewPassphrase, error) {
				return pluginv1.NewPassphrase{}, raise()
			},
		})) {
			if strings.HasSuffix(call, "assphrase") {
				all[call] = err
			}
		}
		return all
	}
	for call, err := range fail(sent) {
		assert.Equal(t, sent, pluginv1.AsError(err), call)
	}
	for call, err := range fail(nil) {
		e := pluginv1.AsError(err)
		assert.Equal(t, pluginv1.CodeInternal, e.Code, call)
		assert.Contains(t, e.Message, "panicked (string)", call)
		assert.Contains(t, e.Detail, "source_test.go", call)
		assert.NotContains(t, fmt.Sprintf("%+v", *e), canary, call)
	}
}

// rawSource and rawKeys are plugins that were not written with this package.
type rawSource struct {
	pb.UnimplementedSourceServer
	parts []*pb.Chunk
}

func (r *rawSource) Fetch(_ *pb.FetchRequest, stream grpc.ServerStreamingServer[pb.Chunk]) error {
	for _, p := range r.parts {
		if err := stream.Send(p); err != nil {
			return err
		}
	}
	return nil
}

type rawKeys struct {
	pb.UnimplementedKeyProviderServer
	passphrase []byte
	uri        string
}

func (r *rawKeys) Passphrase(context.Context, *pb.PassphraseRequest) (*pb.PassphraseResponse, error) {
	return &pb.PassphraseResponse{Passphrase: r.passphrase}, nil
}

func (r *rawKeys) NewPassphrase(context.Context, *pb.NewPassphraseRequest) (*pb.NewPassphraseResponse, error) {
	return &pb.NewPassphraseResponse{Passphrase: r.passphrase, Uri: r.uri}, nil
}

func serveParts(t *testing.T, parts ...*pb.Chunk) *pluginv1.Client {
	t.Helper()
	return serve(t, func(s grpc.ServiceRegistrar) { pb.RegisterSourceServer(s, &rawSource{parts: parts}) })
}

func serveKeys(t *testing.T, keys *rawKeys) *pluginv1.Client {
	t.Helper()
	return serve(t, func(s grpc.ServiceRegistrar) { pb.RegisterKeyProviderServer(s, keys) })
}

func data(n int) *pb.Chunk { return &pb.Chunk{Part: &pb.Chunk_Data{Data: make([]byte, n)}} }

func begin() *pb.Chunk { return &pb.Chunk{Part: &pb.Chunk_Begin{Begin: &pb.Begin{Revision: "1"}}} }

func TestWrongParts(t *testing.T) {
	t.Parallel()
	const most = 3 << 20
	whole := pluginv1.MaxChunkBytes
	for name, tt := range map[string]struct {
		parts []*pb.Chunk
		says  string // none: the parts are in order
	}{
		"an empty object":         {parts: []*pb.Chunk{begin()}},
		"as large as can be":      {parts: []*pb.Chunk{begin(), data(whole), data(whole), data(whole)}},
		"begun again":             {parts: []*pb.Chunk{begin(), data(whole), data(whole), begin(), data(whole), data(whole)}},
		"without a begin":         {says: "ended without begin"},
		"data first":              {parts: []*pb.Chunk{data(1)}, says: "data before begin"},
		"an empty part":           {parts: []*pb.Chunk{begin(), data(0)}, says: "a part of 0 bytes"},
		"a part that is too long": {parts: []*pb.Chunk{begin(), data(whole + 1)}, says: "a part of 1048577 bytes"},
		"one byte too many":       {parts: []*pb.Chunk{begin(), data(whole), data(whole), data(whole), data(1)}, says: "more than 3145728 bytes"},
		"neither":                 {parts: []*pb.Chunk{{}}, says: "neither begin nor data"},
		"neither, later":          {parts: []*pb.Chunk{begin(), {}}, says: "neither begin nor data"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := serveParts(t, tt.parts...).Fetch(t.Context(), pluginv1.FetchRequest{MaxBytes: most}, noPart)
			if tt.says == "" {
				assert.NoError(t, err)
				return
			}
			requireBreach(t, err, "P-42", tt.says)
		})
	}
}

// TestLongRevision: a revision is cut like every text.
func TestLongRevision(t *testing.T) {
	t.Parallel()
	long := &pb.Chunk{Part: &pb.Chunk_Begin{Begin: &pb.Begin{Revision: strings.Repeat("x", 2*pluginv1.MaxTextBytes)}}}
	require.NoError(t, serveParts(t, long).Fetch(t.Context(), pluginv1.FetchRequest{}, func(c pluginv1.Chunk) error {
		assert.Len(t, c.Revision, pluginv1.MaxTextBytes)
		return nil
	}))
}

func TestValidateOnly(t *testing.T) {
	t.Parallel()
	only := pluginv1.FetchRequest{MaxBytes: 1, ValidateOnly: true}
	require.NoError(t, serveParts(t).Fetch(t.Context(), only, noPart))
	requireBreach(t, serveParts(t, begin()).Fetch(t.Context(), only, noPart), "P-43", "only to validate the document")

	keys := &rawKeys{}
	client := serveKeys(t, keys)
	_, err := client.Passphrase(t.Context(), pluginv1.PassphraseRequest{ValidateOnly: true})
	require.NoError(t, err)
	keys.passphrase = []byte("c4n4ry of enough bytes")
	got, err := client.Passphrase(t.Context(), pluginv1.PassphraseRequest{ValidateOnly: true})
	requireBreach(t, err, "P-43", "only to validate the document")
	assert.Empty(t, got)
	assert.NotContains(t, err.Error(), "c4n4ry")
}

func TestPassphraseBounds(t *testing.T) {
	t.Parallel()
	for size, good := range map[int]bool{0: false, 13: false, 14: true, 4096: true, 4097: false} {
		client := serveKeys(t, &rawKeys{passphrase: make([]byte, size), uri: "x"})
		got, err := client.Passphrase(t.Context(), pluginv1.PassphraseRequest{})
		made, madeErr := client.NewPassphrase(t.Context(), pluginv1.NewPassphraseRequest{})
		if good {
			require.NoError(t, errors.Join(err, madeErr))
			assert.Len(t, got, size)
			continue
		}
		requireBreach(t, err, "P-45", "Passphrase answered with a passphrase that has fewer than 14 or more than 4096 bytes")
		requireBreach(t, madeErr, "P-45", "NewPassphrase answered with")
		assert.Empty(t, got)
		assert.Empty(t, made)
	}
}

func TestNewPassphraseURI(t *testing.T) {
	t.Parallel()
	for size, good := range map[int]bool{0: false, 1: true, 4096: true, 4097: false} {
		client := serveKeys(t, &rawKeys{passphrase: make([]byte, 32), uri: strings.Repeat("x", size)})
		_, err := client.NewPassphrase(t.Context(), pluginv1.NewPassphraseRequest{})
		if good {
			require.NoError(t, err)
			continue
		}
		requireBreach(t, err, "P-46", fmt.Sprintf("a URI of %d bytes", size))
	}
}

// TestCancelledFetch: the end of the caller's context ends the plugin's call too.
func TestCancelledFetch(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	client := serveDescriber(t, &fakeSource{
		fetch: func(ctx context.Context, _ pluginv1.FetchRequest, send func(pluginv1.Chunk) error) error {
			if err := send(pluginv1.Chunk{Begin: true}); err != nil {
				return err
			}
			<-ctx.Done()
			ended <- ctx.Err()
			return ctx.Err()
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	err := client.Fetch(ctx, pluginv1.FetchRequest{MaxBytes: 1}, func(pluginv1.Chunk) error {
		cancel()
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, <-ended, context.Canceled)
}

// TestReceiverOfPartsFails: an error of the receiver ends the call in the plugin, and is returned.
func TestReceiverOfPartsFails(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	client := serveDescriber(t, &fakeSource{
		fetch: func(ctx context.Context, _ pluginv1.FetchRequest, send func(pluginv1.Chunk) error) error {
			err := send(pluginv1.Chunk{Begin: true})
			<-ctx.Done()
			ended <- ctx.Err()
			return err
		},
	})
	full := errors.New("the disk is full")
	require.ErrorIs(t, client.Fetch(t.Context(), pluginv1.FetchRequest{}, func(pluginv1.Chunk) error { return full }), full)
	require.ErrorIs(t, <-ended, context.Canceled)
}
