// Command openntpd is a plugin as a vendor of a system with OpenRC writes it: the provider openntpd of Timesync, with the SDK
// and a service manager of its own.
package main

import (
	"context"

	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

const service = "openntpd"

func main() {
	sdk.Main(sdk.Plugin{
		Name: "openntpd", Version: "1.0.0", OS: []string{"linux"}, Distributions: []string{"alpine", "gentoo"},
		Kinds: []sdk.Kind{sdk.For(v1alpha1.APIVersion, v1alpha1.KindTimesync, sdk.PhasePreparation, plan).Provides("clock:", "file:")},
		Fit:   fit,
	})
}

func fit(ctx context.Context, m sdk.Machine) (sdk.Fitness, string, error) {
	if m.Target.Init != target.InitOpenRC {
		return sdk.FitnessUnsupported, "OpenRC does not start the services of this machine", nil
	}
	state, err := openrc{m.FS, m.Commands, m.Offline()}.State(ctx, service)
	switch {
	case err != nil:
		return sdk.FitnessUnsupported, "", err
	case !state.Exists:
		return sdk.FitnessAbsent, service + " is not installed", nil
	case state.Active == "active" || m.Offline() && state.Enabled:
		return sdk.FitnessActive, service + " is the time daemon of this machine", nil
	}
	return sdk.FitnessInstalled, service + " is installed", nil
}
