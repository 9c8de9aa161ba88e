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

// core are the settings of a small document, in the format of the release.
func core(r settings.Release) []settings.Setting {
	cri := func(keys ...string) []string { return append([]string{"plugins", settings.CRIPlugin}, keys...) }
	if r.Major == 1 {
		return []settings.Setting{
			{Path: cri("containerd", "runtimes", "runc", "options", "SystemdCgroup"), Value: true, Field: "spec.cgroupDriver"},
			{Path: cri("sandbox_image"), Value: "registry.example.com/pause:3.10", Field: "spec.sandboxImage"},
			{Path: cri("containerd", "snapshotter"), Value: "native", Field: "spec.snapshotter"},
			{Path: cri("registry", "config_path"), Value: "/etc/containerd/certs.d", Field: "spec.registries"},
			{Path: []string{"oom_score"}, Value: int64(0), Field: "spec.oomScore"},
		}
	}
	images := func(keys ...string) []string { return append([]string{"plugins", settings.ImagesPlugin}, keys...) }
	runtime := func(keys ...string) []string { return append([]string{"plugins", settings.RuntimePlugin}, keys...) }
	return []settings.Setting{
		{Path: runtime("containerd", "runtimes", "runc", "options", "SystemdCgroup"), Value: true, Field: "spec.cgroupDriver"},
		{Path: images("pinned_images", "sandbox"), Value: "registry.example.com/pause:3.10", Field: "spec.sandboxImage"},
		{Path: images("snapshotter"), Value: "native", Field: "spec.snapshotter"},
		{Path: images("registry", "config_path"), Value: "/etc/containerd/certs.d", Field: "spec.registries"},
		{Path: []string{"oom_score"}, Value: int64(0), Field: "spec.oomScore"},
	}
}

// configured is the configuration that these settings make of the present one.
func configured(m sdk.Machine, r settings.Release, desired []settings.Setting, imports ...string) (layout.Configuration, error) {
	now, err := layout.Read(m, settings.PathsOf(m.Target.OS).Config, r, imports)
	if err != nil {
		return layout.Configuration{}, err
	}
	return layout.Configure(m, r, now, desired)
}
