// Command machineadm-timesync-plugin-chronyd serves Timesync documents: it configures chronyd, makes it the only time daemon
// of the machine and waits until it has synchronized the clock.
package main

import (
	"context"
	"slices"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/version"
	"github.com/machineadm/machineadm/plugins/timesync/internal/daemon"
	"github.com/machineadm/machineadm/plugins/timesync/internal/directives"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

func main() {
	sdk.Main(sdk.Plugin{
		Name:          "chronyd",
		Version:       version.String(),
		OS:            []string{"linux"},
		Distributions: []string{"rhel", "fedora", "centos", "rocky", "almalinux", "amzn", "sles", "opensuse"},
		Kinds: []sdk.Kind{
			sdk.For(v1alpha1.APIVersion, v1alpha1.KindTimesync, sdk.PhasePreparation, plan).Validate(validate).Provides("clock:"),
		},
		Fit: func(ctx context.Context, m sdk.Machine) (sdk.Fitness, string, error) {
			return daemon.Fit(ctx, m, units()...)
		},
	})
}

// units are the names of chronyd's service: of Debian, and of all others. Debian's has the other one as its alias.
func units() []string { return []string{"chrony.service", "chronyd.service"} }

func validate(doc v1alpha1.Timesync) []sdk.Violation {
	_, violations := resolve(doc)
	return violations
}

// resolve returns the settings of a document, or all of its violations.
func resolve(doc v1alpha1.Timesync) (settings.Settings, []sdk.Violation) {
	want, violations := directives.Resolve(doc)
	fields := want
	fields.Lines = nil
	want.Warnings = slices.Concat(want.Warnings, manual().Warn(want), doubts(want))
	return want, append(violations, manual().Refuse(render(fields, keyName), want)...)
}

func plan(ctx context.Context, m sdk.Machine, doc v1alpha1.Timesync) (sdk.Plan, error) {
	want, violations := resolve(doc)
	if len(violations) > 0 {
		return sdk.Plan{}, sdk.InvalidConfig(violations...)
	}
	if err := unsupported(want); err != nil {
		return sdk.Plan{}, err
	}
	d, command, err := daemon.Find(ctx, m, doc, "chrony", units()...)
	if err != nil {
		return sdk.Plan{Warnings: want.Warnings}, err
	}
	c, err := read(m, command)
	if err != nil {
		return sdk.Plan{}, err
	}
	if d.Files, err = c.desired(want); err != nil {
		return sdk.Plan{}, err
	}
	c.warnOfPoints(want)
	d.Check, d.Healthy, d.Status, d.MaxDistance = c.check, healthy(want, d.Files), statusOf(want), c.distance
	result, err := daemon.Plan(ctx, m, want, d)
	result.Warnings = append(result.Warnings, c.warnings...)
	return result, err
}

// unsupported refuses what chronyd cannot express.
func unsupported(want settings.Settings) error {
	if len(want.Fallback) == 0 {
		return nil
	}
	return sdk.Unsupported("spec.fallback", "chronyd has no fallback servers: it uses the best of all sources", "list them in servers, or remove them")
}
