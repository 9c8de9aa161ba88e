package launch

import (
	"context"
	"log/slog"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// calls logs each call of a plugin: which, for how long and with which error code. It logs nothing of what a call
// carries, which is, or quotes, values of the document.
type calls struct {
	pluginv1.Configurator
	log *slog.Logger
}

// Describe implements pluginv1.Configurator.
func (c calls) Describe(ctx context.Context, r pluginv1.DescribeRequest) (pluginv1.Description, error) {
	started := time.Now()
	d, err := c.Configurator.Describe(ctx, r)
	c.ended("Describe", started, err, slog.String("version", d.Version), slog.String("fitness", d.Fitness.String()))
	return d, err
}

// Plan implements pluginv1.Configurator.
func (c calls) Plan(ctx context.Context, r pluginv1.Request) (pluginv1.Plan, error) {
	started := time.Now()
	p, err := c.Configurator.Plan(ctx, r)
	c.ended("Plan", started, err, slog.Int("changes", len(p.Changes)), slog.Int("warnings", len(p.Warnings)))
	return p, err
}

// Apply implements pluginv1.Configurator.
func (c calls) Apply(
	ctx context.Context, r pluginv1.Request, limit int, send func(pluginv1.Event) error,
) (pluginv1.Finished, error) {
	started, events := time.Now(), 0
	c.log.Debug("plugin called", "call", "Apply", "timeLeft", r.TimeLeft)
	f, err := c.Configurator.Apply(ctx, r, limit, func(e pluginv1.Event) error {
		events++
		return send(e)
	})
	failed := err
	if f.Error != nil {
		failed = f.Error
	}
	c.ended("Apply", started, failed, slog.Int("events", events))
	return f, err
}

// Stop implements pluginv1.Configurator.
func (c calls) Stop(ctx context.Context) error {
	started := time.Now()
	err := c.Configurator.Stop(ctx)
	c.ended("Stop", started, err)
	return err
}

func (c calls) ended(call string, started time.Time, err error, fields ...any) {
	if err != nil {
		fields = []any{slog.String("error", pluginv1.AsError(err).Code.String())}
	}
	c.log.Info("plugin call ended", append([]any{
		slog.String("call", call), slog.Duration("duration", time.Since(started).Round(time.Millisecond)),
	}, fields...)...)
}
