package daemon

import (
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/layout"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

func installed(r settings.Release) Installation {
	return Installation{Release: r, binary: "/usr/bin/containerd", Config: "/etc/containerd/config.toml", State: machine.ServiceState{Exists: true}, source: "a test"}
}

// configured is the configuration that these settings make of the present one.
func configured(m sdk.Machine, r settings.Release, desired []settings.Setting, imports ...string) (layout.Configuration, error) {
	now, err := layout.Read(m, settings.PathsOf(m.Target.OS).Config, r, imports)
	if err != nil {
		return layout.Configuration{}, err
	}
	return layout.Configure(m, r, now, desired)
}
