package layout

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// Beside adds to a document what foreign files ask of it: their directories of registries stay, and the cgroup driver
// applies to their OCI runtimes.
func Beside(d settings.Desired, m sdk.Machine, p Current, r settings.Release) (settings.Desired, error) {
	shims, file, configured := map[string]string{}, map[string]string{}, ""
	for _, l := range p.foreign() {
		for _, at := range InCRI() {
			if path, _ := l.Get(below(at, "registry", "config_path")...); path != nil && path != "" {
				configured, _ = path.(string)
			}
			for _, name := range l.Keys(below(at, "containerd", "runtimes")...) {
				if shim, _ := l.Get(below(at, "containerd", "runtimes", name, "runtime_type")...); shim != nil {
					shims[name], _ = shim.(string)
					file[name] = l.path
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(shims)) {
		if !settings.IsOCI(shims[name]) || d.Spec.CgroupDriver == "" {
			continue
		}
		d.Others = append(d.Others, name)
		if _, listed := d.Spec.Runtimes[name]; !listed && name != "runc" && !p.has(name, d.Spec.CgroupDriver == "systemd") {
			d.Warnings = append(d.Warnings, sdk.Warning{
				Field: "spec.cgroupDriver", Message: "is set for the runtime " + name + " as well, which " + file[name] + " configures",
			})
		}
	}
	return keepDirectories(d, m, configured, r)
}

// CgroupDriver is what containerd 1.x uses for runc if no document asks for one.
func (p Current) CgroupDriver() string {
	if p.has("runc", true) {
		return "systemd"
	}
	return "cgroupfs"
}

// has reports whether the files that are there give a runtime this cgroup driver.
func (p Current) has(runtime string, systemd bool) bool {
	var now any
	layers := slices.Clone(p.layers)
	layers[0].Document = p.main.Document
	for _, l := range layers {
		for _, at := range InCRI("containerd", "runtimes", runtime, "options", "SystemdCgroup") {
			if l.Document == nil {
				continue
			}
			if value, ok := l.Get(at...); ok {
				now = value
			}
		}
	}
	return now == systemd
}

// keepDirectories adds the directories that config_path names now. Since 2.1 a list needs the pull of before, so that a
// directory without any registry is dropped there.
func keepDirectories(d settings.Desired, m sdk.Machine, configured string, r settings.Release) (settings.Desired, error) {
	at := settings.PathsOf(d.OS)
	d.Directories = slices.Clone(d.Directories)
	for directory := range strings.SplitSeq(configured, at.ListSeparator()) {
		directory = filepath.Clean(directory)
		if configured == "" || directory == at.Certs || slices.Contains(d.Directories, directory) {
			continue
		}
		hosts, err := listing(m, directory)
		if err != nil {
			return d, err
		}
		if len(hosts) > 0 || !r.Since(2, 1) {
			d.Directories = append(d.Directories, directory)
		}
	}
	if !slices.ContainsFunc(d.Registries, func(g settings.Registry) bool { return g.Host == settings.AnyHost && g.HasTree() }) {
		return d, nil
	}
	for _, directory := range d.Directories {
		hosts, err := listing(m, directory)
		if err != nil {
			return d, err
		}
		hosts = slices.DeleteFunc(hosts, func(name string) bool {
			return slices.ContainsFunc(d.Registries, func(g settings.Registry) bool {
				return name == g.Host || name == filepath.Base(at.HostDirectory(g.Host))
			})
		})
		if len(hosts) > 0 {
			return d, sdk.At(sdk.Precondition(fmt.Sprintf("%s applies to %s, too, which %s describes: containerd would no longer look there",
				settings.AnyHost, strings.Join(hosts, ", "), directory), "list them in spec.registries, or remove their directories"),
				`spec.registries["`+settings.AnyHost+`"]`)
		}
	}
	return d, nil
}
