package resume

import (
	"context"
	"errors"

	"github.com/machineadm/machineadm/host/launch"
)

// timed is a Starter that writes a systemd service and the timer that starts it, and starts the timer.
type timed struct{ service, timer unit }

// NewReportStarter returns a Starter that runs argv every 30 s.
func NewReportStarter(argv []string, stateDir string) Starter {
	return &timed{
		service: unit{name: reportService, text: reportServiceText(argv, stateDir)},
		timer:   unit{name: reportTimer, wants: timerWants, text: reportTimerText()},
	}
}

// Install implements Starter.
func (t *timed) Install(ctx context.Context) error {
	if !launch.Systemd() {
		return errors.New("systemd does not run")
	}
	if err := t.write(ctx); err != nil {
		return err
	}
	return launch.StartUnit(ctx, reportTimer)
}

func (t *timed) write(ctx context.Context) error {
	if err := t.service.Install(ctx); err != nil {
		return err
	}
	return t.timer.Install(ctx)
}

// Remove implements Starter. It works also in the service itself, which ends by itself.
func (t *timed) Remove(ctx context.Context) error {
	there, err := ownerOf(t.timer.at(adminUnits, reportTimer))
	if there == own {
		err = launch.StopUnit(ctx, reportTimer)
	}
	return errors.Join(err, t.timer.Remove(ctx), t.service.Remove(ctx))
}
