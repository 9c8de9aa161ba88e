// Command machineadm-timesync-plugin-w32time serves Timesync documents on Windows: it configures the Windows Time service,
// keeps it running and waits until it has synchronized the clock.
package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/version"
	"github.com/machineadm/machineadm/plugins/timesync/internal/daemon"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

func main() {
	sdk.Main(sdk.Plugin{
		Name:    "w32time",
		Version: version.String(),
		OS:      []string{"windows"},
		Kinds: []sdk.Kind{
			sdk.For(v1alpha1.APIVersion, v1alpha1.KindTimesync, sdk.PhasePreparation, plan).Validate(validate).Provides("clock:"),
		},
		Fit: func(ctx context.Context, m sdk.Machine) (sdk.Fitness, string, error) {
			return daemon.Fit(ctx, m, serviceName)
		},
	})
}

// config is the providerConfig.
type config struct {
	// Force lets a member of a domain use the servers of the document in place of its domain controllers.
	Force bool `json:"force,omitempty"`
}

func validate(doc v1alpha1.Timesync) []sdk.Violation {
	_, _, violations := resolve(doc)
	return violations
}

func resolve(doc v1alpha1.Timesync) (settings.Settings, config, []sdk.Violation) {
	want, violations := settings.Resolve(doc)
	extra, more := sdk.ProviderConfig[config](doc.Spec.ProviderConfig)
	return want, extra, slices.Concat(violations, more)
}

func plan(ctx context.Context, m sdk.Machine, doc v1alpha1.Timesync) (sdk.Plan, error) {
	want, extra, violations := resolve(doc)
	if len(violations) > 0 {
		return sdk.Plan{}, sdk.InvalidConfig(violations...)
	}
	if err := sdk.UnsupportedFields(unsupported(want)...); err != nil {
		return sdk.Plan{}, err
	}
	if err := sdk.ClaimSpec(m, "clock:system", doc.Spec); err != nil {
		return sdk.Plan{}, err
	}
	states, err := daemon.Query(ctx, m, serviceName, otherName)
	if err != nil {
		return sdk.Plan{}, err
	}
	if !states[serviceName].Exists {
		return sdk.Plan{}, sdk.Precondition("the service "+serviceName+" is not registered", "run w32tm /register, then run again")
	}
	values := desired(want)
	triggers, err := withoutTriggers(m)
	err = cmp.Or(err, checkDomain(m, want, extra.Force), checkPolicies(m, values), checkOther(states[otherName], want))
	if err != nil {
		return sdk.Plan{}, err
	}
	want.DisableOthers = false // see checkOther
	return daemon.Plan(ctx, m, want, daemon.Daemon{
		Unit: serviceName, States: states, Registry: values, Then: triggers, Healthy: healthy, Status: status,
		Log: "see the event log System, source Time-Service",
	})
}
