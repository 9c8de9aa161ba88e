// Command machineadm-timesync-plugin-ntpd serves Timesync documents: it configures ntpd of NTPsec or of the NTP reference
// implementation, makes it the only time daemon of the machine and waits until it has synchronized the clock.
package main

import (
	"context"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/version"
	"github.com/machineadm/machineadm/plugins/timesync/internal/daemon"
	"github.com/machineadm/machineadm/sdk"
)

func main() {
	sdk.Main(sdk.Plugin{
		Name:    "ntpd",
		Version: version.String(),
		OS:      []string{"linux"},
		Kinds: []sdk.Kind{
			sdk.For(v1alpha1.APIVersion, v1alpha1.KindTimesync, sdk.PhasePreparation, plan).Validate(validate).Provides("clock:"),
		},
		Fit: func(ctx context.Context, m sdk.Machine) (sdk.Fitness, string, error) {
			return daemon.Fit(ctx, m, units()...)
		},
	})
}

func validate(doc v1alpha1.Timesync) []sdk.Violation {
	_, violations := resolve(doc)
	return violations
}

func plan(ctx context.Context, m sdk.Machine, doc v1alpha1.Timesync) (sdk.Plan, error) {
	want, violations := resolve(doc)
	if len(violations) > 0 {
		return sdk.Plan{}, sdk.InvalidConfig(violations...)
	}
	if err := unsupported(want); err != nil {
		return sdk.Plan{}, err
	}
	d, command, err := daemon.Find(ctx, m, doc, "ntpsec", units()...)
	if err != nil {
		return sdk.Plan{Warnings: want.Warnings}, err
	}
	c, err := read(m, d.Unit, command)
	if err != nil {
		return sdk.Plan{}, err
	}
	if err := otherImplementation(want, c.ntpsec); err != nil {
		return sdk.Plan{}, err
	}
	if !c.ntpsec {
		if err := unsupportedByReference(want); err != nil {
			return sdk.Plan{}, err
		}
	}
	if d.Files, err = c.desired(want); err != nil {
		return sdk.Plan{}, err
	}
	d.Healthy, d.Status, d.MaxDistance = healthy(d.Unit), statusOf(want), c.distance
	result, err := daemon.Plan(ctx, m, want, d)
	result.Warnings = append(result.Warnings, c.warnings...)
	return result, err
}
