package daemon

import (
	"slices"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// installHint names the package of the family of operating systems.
func installHint(t sdk.Target) string {
	is := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			return t.Distribution == name || slices.Contains(t.Like, name)
		})
	}
	switch {
	case t.OS == "windows":
		return `install containerd's archive for Windows in C:\Program Files\containerd and run containerd.exe --register-service`
	case is("flatcar", "coreos"):
		return "see systemctl status " + settings.Unit + ": containerd is a part of the system image there"
	case is("debian", "ubuntu"):
		return "install the package containerd of the distribution, or containerd.io of Docker"
	case is("rhel", "fedora", "centos"):
		return "install the package containerd.io of Docker, or containerd where the distribution has it"
	case is("suse", "sles", "opensuse"):
		return "install the package containerd"
	}
	return "install containerd with its unit, by a package or by upstream's archive"
}
