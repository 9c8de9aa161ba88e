package sdk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/machineadm/machineadm/sdk/machine"
)

// The pauses between two looks at a daemon grow from the first to the longest.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 2 * time.Second
)

func (a *activator) timeout() time.Duration {
	if a.Timeout > 0 {
		return a.Timeout
	}
	return DefaultHealthTimeout
}

func (a *activator) restart(ctx context.Context, r *record) error {
	if a.hasUnitFiles(r) {
		if err := a.services.DaemonReload(ctx); err != nil {
			return err
		}
	}
	return explained(ctx, a.machine, a.services, a.Unit, a.services.Do(ctx, a.Unit, machine.Restart))
}

// revive restarts the daemon with its old configuration. One that kept dying is refused by systemd for a while
// (StartLimitIntervalSec), so a restart that fails is tried again until the time is over.
func (a *activator) revive(ctx context.Context, r *record) error {
	limited, cancel := context.WithTimeout(ctx, a.timeout())
	defer cancel()
	for pause := a.pause; ; pause = min(2*pause, longestPause) {
		err := a.restart(limited, r)
		if _, refused := asContract(err); refused { // waiting does not unmask a unit
			return err
		}
		if err == nil {
			return a.settle(limited, silence{})
		}
		if !rest(limited, pause) {
			return err
		}
	}
}

// settle waits until the daemon is healthy, and a pause later still the same and healthy: one that answers once and
// dies, or that is restarted over and over, is not.
func (a *activator) settle(ctx context.Context, p Progress) error {
	limited, cancel := context.WithTimeout(ctx, a.timeout())
	defer cancel()
	p.Report("waiting until " + a.Unit + " is healthy")
	last, good := errors.New("it is not healthy"), ""
	for pause := a.pause; ; pause = min(2*pause, longestPause) {
		state, err := a.services.State(limited, a.Unit)
		switch {
		case err != nil:
		case ended(state) && usable(a.machine, a.Unit, state) != nil:
			return usable(a.machine, a.Unit, state)
		case ended(state):
			return fmt.Errorf("it ended (%s)", state.Active)
		case !up(state):
			err = fmt.Errorf("it is %s (%s)", state.Active, state.Sub)
		case a.Healthy != nil:
			err = a.Healthy(limited, a.machine, p)
		}
		if isFinal(err) {
			return err
		}
		seen := "invocation " + state.InvocationID
		switch {
		case err == nil && seen == good:
			return nil
		case err == nil:
			good = seen
		default:
			good = ""
			if limited.Err() == nil { // else it only says that the time is over
				last = err
			}
		}
		if !rest(limited, pause) {
			if err := ctx.Err(); err != nil {
				return err
			}
			return fmt.Errorf("not healthy within %v: %w", a.timeout(), last)
		}
	}
}

// rest pauses, or reports that ctx is over.
func rest(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// silence is the Progress of what nobody needs to hear.
type silence struct{}

// Report implements Progress.
func (silence) Report(string) {}

// Warn implements Progress.
func (silence) Warn(string, string) {}

// RequestReboot implements Progress.
func (silence) RequestReboot(Reboot) {}
