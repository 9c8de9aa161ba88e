package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// waiting plans two changes, of which the first calls do.
func waiting(interruptible bool, done *[]string, do func(context.Context) error) pluginv1.Configurator {
	return configurator(func(context.Context, sdk.Machine, probe) (sdk.Plan, error) {
		plan := changes(2, done)
		plan.Changes[0].Interruptible = interruptible
		plan.Changes[0].Do = func(ctx context.Context, _ sdk.Progress) error { return do(ctx) }
		return plan, nil
	})
}

// TestInterruptibleChange: Stop cancels the context of an interruptible change only.
func TestInterruptibleChange(t *testing.T) {
	t.Parallel()
	oops := errors.New("oops")
	for name, c := range map[string]struct {
		interruptible bool
		answer        func(context.Context) error // once it was stopped
		stopped       bool
		fails         error
	}{
		"ends":                {true, func(ctx context.Context) error { return fmt.Errorf("wait: %w", ctx.Err()) }, true, nil},
		"ends with the cause": {true, context.Cause, true, nil},
		"kills its command":   {true, func(ctx context.Context) error { return &machine.CommandError{Name: "x", Err: ctx.Err()} }, true, nil},
		"succeeds":            {true, func(context.Context) error { return nil }, true, nil},
		"fails":               {true, func(context.Context) error { return oops }, false, oops},
		"not interruptible":   {false, func(ctx context.Context) error { return ctx.Err() }, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var m pluginv1.Configurator
			var done []string
			m = waiting(c.interruptible, &done, func(ctx context.Context) error {
				require.NoError(t, m.Stop(ctx))
				assert.Equal(t, c.interruptible, ctx.Err() != nil)
				if c.interruptible {
					require.ErrorIs(t, context.Cause(ctx), sdk.ErrStopped)
				}
				return c.answer(ctx)
			})
			finished, err := m.Apply(t.Context(), live(document(`{}`)), 0, nothing)
			if c.fails != nil {
				assert.ErrorContains(t, err, c.fails.Error())
			} else {
				require.NoError(t, err)
			}
			assert.Equal(t, c.stopped, finished.Stopped)
			assert.Empty(t, done)
		})
	}
}

// TestTimeLeft: the time limit of the document ends the context of a change, which is no defect of the plugin.
func TestTimeLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, answer := range []func(context.Context) error{
			func(ctx context.Context) error { return ctx.Err() },
			func(ctx context.Context) error {
				return &machine.CommandError{Name: "x", Err: ctx.Err(), Stderr: "raw"}
			},
		} {
			var done []string
			m := waiting(false, &done, func(ctx context.Context) error {
				deadline, ok := ctx.Deadline()
				require.True(t, ok)
				assert.Equal(t, time.Minute, time.Until(deadline))
				<-ctx.Done()
				return answer(ctx)
			})
			request := live(document(`{}`))
			request.TimeLeft = time.Minute
			_, err := m.Apply(t.Context(), request, 0, nothing)
			wantCode(t, err, pluginv1.CodeRetry, "the time limit of the document has passed")
		}
	})
}

// TestStopThatOvertakes: Stop also stops an Apply that was sent earlier and whose handler runs later, and one that waits for
// another Apply.
func TestStopThatOvertakes(t *testing.T) {
	t.Parallel()
	var done []string
	m := configurator(func(context.Context, sdk.Machine, probe) (sdk.Plan, error) { return changes(1, &done), nil })
	arrived, answered := make(chan struct{}, 2), make(chan struct{})
	late := grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		arrived <- struct{}{}
		<-answered
		return handler(srv, stream)
	})
	client := connect(t, m, pluginv1.OrderStops(), late)
	results := make(chan pluginv1.Finished, 2)
	for range cap(results) {
		go func() {
			finished, err := client.Apply(t.Context(), live(document(`{}`)), 0, nothing)
			assert.NoError(t, err)
			results <- finished
		}()
		<-arrived
	}
	require.NoError(t, client.Stop(t.Context()))
	close(answered)
	for range cap(results) {
		assert.True(t, (<-results).Stopped)
	}
	assert.Empty(t, done)
	finished, err := client.Apply(t.Context(), live(document(`{}`)), 0, nothing)
	require.NoError(t, err)
	assert.False(t, finished.Stopped, "Stop was answered before this Apply was sent")
	assert.Len(t, done, 1)
}
