package sdk_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

func environmentOf(unit string, all ...sdk.Variable) sdk.Activation {
	return sdk.Activation{Unit: unit, Environment: &sdk.ServiceEnvironment{Variables: all}}
}

// TestActivateAnEnvironment: variables alone are set and the service is restarted; afterwards nothing is planned.
func TestActivateAnEnvironment(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	f.Machine.Target.OS = "windows"
	services := machinetest.NewWindowsServices()
	services.Put("d", machine.ServiceState{Active: "active", Sub: "running", InvocationID: "1"})
	f.Machine.Services = services
	if err := activate(t, f.Machine, environmentOf("d", sdk.Variable{Name: "P", Value: "x"}), 1); err != nil {
		t.Fatal(err)
	}
	got, err := services.Environment("d")
	if err != nil || !slices.Equal(got, []string{"P=x", "MACHINEADM_ADDED=P"}) {
		t.Errorf("%q, %v", got, err)
	}
	if calls := services.Calls(); !slices.Equal(calls, []string{"set-environment d.service", "restart d.service"}) {
		t.Errorf("calls %q", calls)
	}
	if err := activate(t, f.Machine, environmentOf("d", sdk.Variable{Name: "P", Value: "x"}), 0); err != nil {
		t.Error(err)
	}
}

// TestActivateAnEnvironmentElsewhere: where the service manager stores no variables, it is Unsupported.
func TestActivateAnEnvironmentElsewhere(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	f.Services.Put("d", machine.ServiceState{Active: "active"})
	image, _ := machinetest.NewImage(t)
	for name, m := range map[string]sdk.Machine{"live": f.Machine, "image": image} {
		changes, err := sdk.Activate(t.Context(), m, environmentOf("d"))
		if !errors.Is(err, machine.ErrUnsupported) || len(changes) > 0 {
			t.Errorf("%s: %d changes, %v", name, len(changes), err)
		}
	}
}

// TestActivateAnUnusableServiceOfWindows: absent and disabled services are refused.
func TestActivateAnUnusableServiceOfWindows(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	f.Machine.Target.OS = "windows"
	services := machinetest.NewWindowsServices()
	f.Machine.Services = services
	_, err := sdk.Activate(t.Context(), f.Machine, environmentOf("d"))
	wantCode(t, err, pluginv1.CodePrecondition, "d is not installed")
	services.Put("d", machine.ServiceState{Masked: true})
	_, err = sdk.Activate(t.Context(), f.Machine, environmentOf("d"))
	wantCode(t, err, pluginv1.CodePrecondition, "the service d is disabled")
}
