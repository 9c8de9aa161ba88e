package launch

import (
	"context"
	"log/slog"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// sourceCalls logs name, duration and error code of each call of a source, like calls.
type sourceCalls struct {
	pluginv1.Source
	calls calls
}

// Fetch implements pluginv1.Source.
func (c sourceCalls) Fetch(ctx context.Context, r pluginv1.FetchRequest, send func(pluginv1.Chunk) error) error {
	started, size := time.Now(), 0
	err := c.Source.Fetch(ctx, r, func(part pluginv1.Chunk) error {
		size += len(part.Data)
		return send(part)
	})
	c.calls.ended("Fetch", started, err, slog.Int("bytes", size))
	return err
}

// Report implements pluginv1.Source.
func (c sourceCalls) Report(ctx context.Context, r pluginv1.ReportRequest) error {
	started := time.Now()
	err := c.Source.Report(ctx, r)
	c.calls.ended("Report", started, err, slog.Int("bytes", len(r.Report)))
	return err
}

// Store implements pluginv1.Source.
func (c sourceCalls) Store(ctx context.Context, r pluginv1.StoreRequest) (pluginv1.Stored, error) {
	started := time.Now()
	stored, err := c.Source.Store(ctx, r)
	c.calls.ended("Store", started, err, slog.Int("bytes", len(r.Data)))
	return stored, err
}

// Remove implements pluginv1.Source.
func (c sourceCalls) Remove(ctx context.Context, r pluginv1.RemoveRequest) error {
	started := time.Now()
	err := c.Source.Remove(ctx, r)
	c.calls.ended("Remove", started, err)
	return err
}

// keyCalls logs name, duration and error code of each call of a key provider, like calls.
type keyCalls struct {
	pluginv1.KeyProvider
	calls calls
}

// Passphrase implements pluginv1.KeyProvider.
func (c keyCalls) Passphrase(ctx context.Context, r pluginv1.PassphraseRequest) ([]byte, error) {
	started := time.Now()
	passphrase, err := c.KeyProvider.Passphrase(ctx, r)
	c.calls.ended("Passphrase", started, err)
	return passphrase, err
}

// NewPassphrase implements pluginv1.KeyProvider.
func (c keyCalls) NewPassphrase(ctx context.Context, r pluginv1.NewPassphraseRequest) (pluginv1.NewPassphrase, error) {
	started := time.Now()
	made, err := c.KeyProvider.NewPassphrase(ctx, r)
	c.calls.ended("NewPassphrase", started, err)
	return made, err
}
