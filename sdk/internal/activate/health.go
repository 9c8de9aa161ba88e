package activate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk/internal/fault"
	"github.com/machineadm/machineadm/sdk/internal/units"
	"github.com/machineadm/machineadm/sdk/machine"
)

// The pauses between two queries of a daemon grow from the first to the longest.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 2 * time.Second
)

// reload makes systemd read its files again, if the configuration, or that of an interrupted activation, has some.
func (a *activator) reload(ctx context.Context, r *record) error {
	if !a.hasUnitFiles(r) {
		return nil
	}
	return a.services.DaemonReload(ctx)
}

func (a *activator) restart(ctx context.Context) error {
	return units.Explained(ctx, a.machine, a.services, a.Unit, a.services.Do(ctx, a.Unit, machine.Restart))
}

// restartOld restarts the daemon with its old configuration. systemd refuses one that has crashed repeatedly for a while
// (StartLimitIntervalSec), so a failed restart is repeated until the timeout.
func (a *activator) restartOld(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	for pause := a.pause; ; pause = min(2*pause, longestPause) {
		err := a.restart(limited)
		if err == nil {
			return a.awaitHealth(limited, discard{})
		}
		if _, refused := fault.Known(err); refused || !wait(limited, pause) { // waiting does not unmask a unit
			return err
		}
	}
}

// awaitHealth waits until the daemon is healthy twice with one pause between and with the same invocation: a daemon that
// answers once and ends, or that is restarted repeatedly, is not healthy. Without a check of its health it must run for ten
// pauses, because systemd reports a simple service as active before the program has read its configuration.
func (a *activator) awaitHealth(ctx context.Context, p Progress) error {
	limited, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	p.Report("waiting until " + a.Unit + " is healthy")
	last, healthy, since := errors.New("it is not healthy"), "", time.Time{}
	settle := time.Duration(0)
	if a.Healthy == nil {
		settle = 10 * a.pause
	}
	for pause := a.pause; ; pause = min(2*pause, longestPause) {
		state, err := a.services.State(limited, a.Unit)
		switch {
		case err != nil:
		case units.Ended(state):
			return cmp.Or(units.Usable(a.machine, a.Unit, state), fmt.Errorf("it ended (%s)", state.Active))
		case !units.Up(state):
			err = fmt.Errorf("it is %s (%s)", state.Active, state.Sub)
		case a.Healthy != nil:
			err = a.Healthy(limited, a.machine, p)
		}
		invocation := "invocation " + state.InvocationID
		switch {
		case fault.IsFinal(err):
			return err
		case err == nil && invocation == healthy && time.Since(since) >= settle:
			return nil
		case err == nil && invocation == healthy:
		case err == nil:
			healthy, since = invocation, time.Now()
		default:
			healthy = ""
			if limited.Err() == nil { // otherwise err only reports the timeout
				last = err
			}
		}
		if !wait(limited, pause) {
			return cmp.Or(ctx.Err(), fmt.Errorf("not healthy within %v: %w", a.Timeout, last))
		}
	}
}

// wait pauses, and returns false when ctx ends first.
func wait(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// discard is the Progress of a rollback.
type discard struct{}

func (discard) Report(string)                 {}
func (discard) Warn(string, string)           {}
func (discard) RequestReboot(pluginv1.Reboot) {}
