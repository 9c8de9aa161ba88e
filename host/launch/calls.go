package launch

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/proctree"
)

// calls logs name, duration and error code of each call of a plugin, and ends the orphans of an Apply. It logs no
// argument or result, because they hold values of the document.
type calls struct {
	pluginv1.Configurator
	log  *slog.Logger
	tree *proctree.Tree
}

// orphanTimeout bounds the wait for orphans after an Apply: a process in uninterruptible sleep cannot be killed.
const orphanTimeout = 5 * time.Second

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

// Apply implements pluginv1.Configurator. It kills the processes that the call orphaned.
func (c calls) Apply(
	ctx context.Context, r pluginv1.Request, limit int, send func(pluginv1.Event) error,
) (pluginv1.Finished, error) {
	started, events := time.Now(), 0
	c.log.Debug("plugin called", "call", "Apply", "timeLeft", r.TimeLeft)
	f, err := c.Configurator.Apply(ctx, r, limit, func(e pluginv1.Event) error {
		events++
		return send(e)
	})
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), orphanTimeout)
	defer cancel()
	killed, left := c.tree.KillOrphans(ending)
	switch {
	case err != nil:
	case left != nil:
		err = &pluginv1.Error{Code: pluginv1.CodeInternal, Message: fmt.Sprintf("processes that the plugin left cannot be ended: %s", left)}
	case f.Error == nil && !f.Stopped:
		err = warnOfKilled(killed, send)
	}
	failed := err
	if f.Error != nil {
		failed = f.Error
	}
	c.ended("Apply", started, failed, slog.Int("events", events))
	return f, err
}

// warnOfKilled says of each process that a successful Apply started and that ended with it, such as a daemon: the change that started it
// does not last.
func warnOfKilled(killed []proctree.Killed, send func(pluginv1.Event) error) error {
	const most = 10
	for _, k := range killed[:min(len(killed), most)] {
		message := fmt.Sprintf("the process %s (PID %d), which was started by this Apply, ended with it; "+
			"a plugin has to start what is to stay running by the service manager, or in a control group of its own (G-20)", strings.ToValidUTF8(k.Name, "?"), k.PID)
		if err := send(pluginv1.Warning{Message: message}); err != nil {
			return err
		}
	}
	return nil
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
