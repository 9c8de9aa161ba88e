package sdk_test

import (
	"context"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/sdk"
)

// TestFitWithoutSystemd: a plugin that asks for services does not fit an image that boots another init system, and Plan says so too.
func TestFitWithoutSystemd(t *testing.T) {
	t.Parallel()
	ask := func(ctx context.Context, m sdk.Machine) error {
		_, err := m.Services.State(ctx, "chrony")
		return err
	}
	p := plugin(func(ctx context.Context, m sdk.Machine, _ probe) (sdk.Plan, error) { return sdk.Plan{}, ask(ctx, m) })
	p.Fit = func(ctx context.Context, m sdk.Machine) (sdk.Fitness, string, error) {
		return sdk.FitnessInstalled, "fits", ask(ctx, m)
	}
	m, root := sdk.NewConfigurator(p, "linux"), t.TempDir()
	for init, want := range map[string]sdk.Fitness{
		target.InitOpenRC: sdk.FitnessUnsupported, target.InitRunit: sdk.FitnessUnsupported, target.InitS6: sdk.FitnessUnsupported,
		target.InitSystemd: sdk.FitnessInstalled, target.InitNone: sdk.FitnessInstalled, "": sdk.FitnessInstalled,
	} {
		image := target.Target{OS: "linux", Init: init}
		d, err := m.Describe(t.Context(), pluginv1.DescribeRequest{Root: root, Target: image})
		if err != nil || d.Fitness != want {
			t.Errorf("%q: described as %v, %q (%v)", init, d.Fitness, d.FitnessReason, err)
		}
		_, err = m.Plan(t.Context(), pluginv1.Request{Document: document(`{}`), Root: root, Target: image})
		if want == sdk.FitnessInstalled {
			if err != nil {
				t.Errorf("%q: %v", init, err)
			}
			continue
		}
		text := init + " starts the services of the image, not systemd"
		if !strings.Contains(d.FitnessReason, text) {
			t.Errorf("%q: reason %q", init, d.FitnessReason)
		}
		wantCode(t, err, pluginv1.CodeUnsupported, text)
	}
}
