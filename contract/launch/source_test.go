package launch_test

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

// These as the only argument make the test binary a plugin of that type.
const (
	asSource      = "serve-as-source"
	asKeyProvider = "serve-as-key-provider"
)

// source answers an object of MaxBytes bytes, and a report as an error with its content as the message.
type source struct{ mirror }

func (source) Fetch(_ context.Context, r pluginv1.FetchRequest, send func(pluginv1.Chunk) error) error {
	if err := send(pluginv1.Chunk{Begin: true, Revision: "1"}); err != nil {
		return err
	}
	for left := r.MaxBytes; left > 0; left -= pluginv1.MaxChunkBytes {
		if err := send(pluginv1.Chunk{Data: make([]byte, min(left, pluginv1.MaxChunkBytes))}); err != nil {
			return err
		}
	}
	return nil
}

func (source) Report(_ context.Context, r pluginv1.ReportRequest) error {
	return &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: string(r.Report)}
}

func (source) Store(_ context.Context, r pluginv1.StoreRequest) (pluginv1.Stored, error) {
	return pluginv1.Stored{URI: r.Storage.URIPrefix + r.Name}, nil
}

func (source) Remove(_ context.Context, r pluginv1.RemoveRequest) error {
	return &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: r.Name}
}

// keyProvider answers the document as the passphrase.
type keyProvider struct{ mirror }

func (keyProvider) Passphrase(_ context.Context, r pluginv1.PassphraseRequest) ([]byte, error) {
	return r.Document, nil
}

func (keyProvider) NewPassphrase(_ context.Context, r pluginv1.NewPassphraseRequest) (pluginv1.NewPassphrase, error) {
	return pluginv1.NewPassphrase{Passphrase: r.ProviderConfig, URI: r.Key}, nil
}

func TestSourceProcess(t *testing.T) {
	t.Parallel()
	p := startAs(t, asSource, launch.Environment(runtime.GOOS, os.LookupEnv), &buffer{})
	const size = 5<<20 + 1
	var got int
	require.NoError(t, p.Fetch(t.Context(), pluginv1.FetchRequest{MaxBytes: size}, func(c pluginv1.Chunk) error {
		got += len(c.Data)
		return nil
	}))
	assert.Equal(t, size, got)
	err := p.Report(t.Context(), pluginv1.ReportRequest{Report: []byte("{}")})
	assert.Equal(t, &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: "{}"}, pluginv1.AsError(err))
	stored, err := p.Store(t.Context(), pluginv1.StoreRequest{Storage: pluginv1.Storage{URIPrefix: "x://"}, Name: "n", Data: make([]byte, size)})
	require.NoError(t, err)
	assert.Equal(t, "x://n", stored.URI)
	err = p.Remove(t.Context(), pluginv1.RemoveRequest{Name: "n"})
	assert.Equal(t, &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: "n"}, pluginv1.AsError(err))

	p.Kill()
	err = p.Fetch(context.WithoutCancel(t.Context()), pluginv1.FetchRequest{}, func(pluginv1.Chunk) error { return nil })
	require.ErrorIs(t, err, pluginv1.ErrCrashed)
}

func TestKeyProviderProcess(t *testing.T) {
	t.Parallel()
	p := startAs(t, asKeyProvider, launch.Environment(runtime.GOOS, os.LookupEnv), &buffer{})
	raw := bytes.Repeat([]byte{0, 0xff}, 16)
	got, err := p.Passphrase(t.Context(), pluginv1.PassphraseRequest{Document: raw})
	require.NoError(t, err)
	assert.Equal(t, raw, got)
	made, err := p.NewPassphrase(t.Context(), pluginv1.NewPassphraseRequest{Key: "k", ProviderConfig: raw})
	require.NoError(t, err)
	assert.Equal(t, pluginv1.NewPassphrase{Passphrase: raw, URI: "k"}, made)
}
