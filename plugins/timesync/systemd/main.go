// Command machineadm-timesync-plugin-systemd serves Timesync documents: it configures systemd-timesyncd, makes it the only
// time daemon of the machine and waits until it has synchronized the clock.
package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/version"
	"github.com/machineadm/machineadm/plugins/timesync/internal/daemon"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

func main() {
	sdk.Main(sdk.Plugin{
		Name:          "systemd",
		Version:       version.String(),
		OS:            []string{"linux"},
		Distributions: []string{"debian", "ubuntu", "flatcar", "photon", "arch"},
		Kinds: []sdk.Kind{
			sdk.For(v1alpha1.APIVersion, v1alpha1.KindTimesync, sdk.PhasePreparation, plan).Validate(validate).Provides("clock:"),
		},
		Fit: func(ctx context.Context, m sdk.Machine) (sdk.Fitness, string, error) {
			return daemon.Fit(ctx, m, unitName)
		},
	})
}

func validate(doc v1alpha1.Timesync) []sdk.Violation {
	_, _, violations := resolve(doc)
	return violations
}

// config is the providerConfig of timesyncd.
type config struct {
	// RootDistanceMaxSec is the root distance in seconds beyond which timesyncd ignores a server. Default 5.
	RootDistanceMaxSec *int `json:"rootDistanceMaxSec,omitempty"`
}

// resolve returns the settings of a document and its largest root distance, or all of its violations.
func resolve(doc v1alpha1.Timesync) (settings.Settings, *time.Duration, []sdk.Violation) {
	want, violations := settings.Resolve(doc)
	want.Warnings = append(want.Warnings, warningsOf(want)...)
	c, more := sdk.ProviderConfig[config](doc.Spec.ProviderConfig)
	if c.RootDistanceMaxSec == nil {
		return want, nil, slices.Concat(violations, more)
	}
	distance := time.Duration(*c.RootDistanceMaxSec) * time.Second
	if *c.RootDistanceMaxSec < 1 || *c.RootDistanceMaxSec > maxRootDistance {
		more = append(more, sdk.Violation{
			Field:   "spec.providerConfig.rootDistanceMaxSec",
			Message: fmt.Sprintf("must be a number of seconds from 1 to %d", maxRootDistance), Hint: "a domain controller of Windows needs 30",
		})
	}
	return want, &distance, slices.Concat(violations, more)
}

func plan(ctx context.Context, m sdk.Machine, doc v1alpha1.Timesync) (sdk.Plan, error) {
	want, distance, violations := resolve(doc)
	if len(violations) > 0 {
		return sdk.Plan{}, sdk.InvalidConfig(violations...)
	}
	if err := sdk.UnsupportedFields(unsupported(want)...); err != nil {
		return sdk.Plan{}, err
	}
	d, _, err := daemon.Find(ctx, m, doc, "systemd-timesyncd", unitName)
	if err != nil {
		return sdk.Plan{Warnings: want.Warnings}, err
	}
	own := desired(want)
	d.MaxDistance = defaultRootDistance
	if distance != nil {
		d.MaxDistance = *distance
		own = append(own, assignment{rootDistance, seconds(*distance)})
	}
	if own, err = withDefaults(m, own, want); err != nil {
		return sdk.Plan{}, err
	}
	if err := checkFiles(m, own, want.KeepDistributionSources); err != nil {
		return sdk.Plan{}, err
	}
	warnings, err := warningsFor(m, want)
	if err != nil {
		return sdk.Plan{}, err
	}
	d.Files = []sdk.FileSpec{{Path: ownFile, Content: []byte(render(own)), Mode: ownMode}}
	d.Healthy, d.Status = healthy(want, d.Files), statusOf(want)
	result, err := daemon.Plan(ctx, m, want, d)
	result.Warnings = append(result.Warnings, warnings...)
	return result, err
}
