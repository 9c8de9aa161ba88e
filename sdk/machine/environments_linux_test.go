package machine_test

import (
	"errors"
	"testing"

	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// TestNoEnvironmentsOnLinux: neither systemd nor an image stores variables of services.
func TestNoEnvironmentsOnLinux(t *testing.T) {
	t.Parallel()
	live, closeLive, err := machine.New("", "", machinetest.Target())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := closeLive(); err != nil {
			t.Error(err)
		}
	})
	image, _ := machinetest.NewImage(t)
	for name, m := range map[string]machine.Machine{"live": live, "image": image} {
		if _, err := machine.EnvironmentsOf(m.Services); !errors.Is(err, machine.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
