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

// beside is the document with what it has to respect, or to reach, in files of other people: their directories of
// registries stay, and the cgroup driver counts for their OCI runtimes as well.
func Beside(d settings.Desired, m sdk.Machine, p present, r settings.Release) (settings.Desired, error) {
	kinds := map[string]string{}
	file := map[string]string{}
	configured := ""
	for _, l := range p.foreign() {
		for _, plugin := range []string{settings.CRIPlugin, settings.ImagesPlugin, settings.RuntimePlugin} {
			at := []string{"plugins", plugin}
			if path, _ := l.Get(append(at, "registry", "config_path")...); path != nil && path != "" {
				configured, _ = path.(string)
			}
			for _, name := range l.Keys(append(at, "containerd", "runtimes")...) {
				if kind, _ := l.Get(append(at, "containerd", "runtimes", name, "runtime_type")...); kind != nil {
					kinds[name], _ = kind.(string)
					file[name] = l.path
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		if !settings.IsOCI(kinds[name]) || d.Spec.CgroupDriver == "" {
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

// has says whether the files that are there give a runtime this cgroup driver.
func (p present) has(runtime string, systemd bool) bool {
	var now any
	layers := slices.Clone(p.layers)
	layers[0].Document = p.main.Document
	for _, l := range layers {
		for _, plugin := range []string{settings.CRIPlugin, settings.RuntimePlugin} {
			if l.Document == nil {
				continue
			}
			if value, ok := l.Get("plugins", plugin, "containerd", "runtimes", runtime, "options", "SystemdCgroup"); ok {
				now = value
			}
		}
	}
	return now == systemd
}

// keepDirectories adds the directories that config_path names now. Since 2.1 a list means to pull in the old way, so that
// one that describes no registry is left out there.
func keepDirectories(d settings.Desired, m sdk.Machine, configured string, r settings.Release) (settings.Desired, error) {
	at := settings.PathsOf(d.OS)
	d.Directories = slices.Clone(d.Directories)
	for directory := range strings.SplitSeq(configured, at.List()) {
		directory = filepath.Clean(directory)
		if configured == "" || directory == at.RegistryFiles || slices.Contains(d.Directories, directory) {
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
			return d, sdk.At(sdk.Precondition(fmt.Sprintf("%s also stands for %s, which %s describes: containerd would no longer look there",
				settings.AnyHost, strings.Join(hosts, ", "), directory), "list them in spec.registries, or remove their directories"), `spec.registries["`+settings.AnyHost+`"]`)
		}
	}
	return d, nil
}
