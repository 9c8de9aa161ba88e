package activate

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk/internal/fault"
	"github.com/machineadm/machineadm/sdk/machine"
)

// TestActivationStopsAtAFinalError: the activation does not wait for a daemon whose error is final.
func TestActivationStopsAtAFinalError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mark func(error) error
		wait time.Duration // at least
		end  string
	}{
		"waiting may help": {func(err error) error { return err }, time.Minute, "not healthy within 1m0s: it speaks no CRI"},
		"final":            {fault.Final, 0, "did not take effect (it speaks no CRI)"},
		"final cause":      {func(err error) error { return fmt.Errorf("it is up, but %w", fault.Final(err)) }, 0, "did not take effect (it is up, but it speaks no CRI)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newFakeMachine(true, map[string]string{pathA: "old a"})
				w := h.process(noCrash(), specs(map[string]string{pathA: "new a"})...)
				w.Timeout = time.Minute
				w.Healthy = func(context.Context, machine.Machine, Progress) error {
					if string(h.disk[pathA].Content) == "new a" {
						return c.mark(errors.New("it speaks no CRI"))
					}
					return nil
				}
				began := time.Now()
				err := w.do(t.Context(), discard{})
				wantError(t, err, pluginv1.CodePrecondition, c.end, "the old configuration was restored, and d.service runs with it")
				if took := time.Since(began); took < c.wait || c.wait == 0 && took > 10*time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}
