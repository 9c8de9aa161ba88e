// Package settingstest has the settings that the tests of layout and daemon share.
package settingstest

import "github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"

// Core are the settings of a small document, in the format of the release.
func Core(r settings.Release) []settings.Setting {
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
