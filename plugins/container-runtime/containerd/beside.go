package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/sdk"
)

// beside is the document with what it has to respect, or to reach, in files of other people: their directories of
// registries stay, and the cgroup driver counts for their OCI runtimes as well.
func (d desired) beside(m sdk.Machine, p present, r release) (desired, error) {
	kinds := map[string]string{}
	file := map[string]string{}
	configured := ""
	for _, l := range p.foreign() {
		for _, plugin := range []string{criPlugin, imagesPlugin, runtimePlugin} {
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
	for _, name := range sortedKeys(kinds) {
		if !isOCI(kinds[name]) || d.spec.CgroupDriver == "" {
			continue
		}
		d.others = append(d.others, name)
		if _, listed := d.spec.Runtimes[name]; !listed && name != "runc" && !p.has(name, d.spec.CgroupDriver == "systemd") {
			d.warnings = append(d.warnings, sdk.Warning{
				Field: "spec.cgroupDriver", Message: "is set for the runtime " + name + " as well, which " + file[name] + " configures",
			})
		}
	}
	return d.keepDirectories(m, configured, r)
}

// has says whether the files that are there give a runtime this cgroup driver.
func (p present) has(runtime string, systemd bool) bool {
	var now any
	layers := slices.Clone(p.layers)
	layers[0].Document = p.main.Document
	for _, l := range layers {
		for _, plugin := range []string{criPlugin, runtimePlugin} {
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
func (d desired) keepDirectories(m sdk.Machine, configured string, r release) (desired, error) {
	at := pathsOf(d.os)
	d.directories = slices.Clone(d.directories)
	for directory := range strings.SplitSeq(configured, at.list()) {
		directory = filepath.Clean(directory)
		if configured == "" || directory == at.certs || slices.Contains(d.directories, directory) {
			continue
		}
		hosts, err := listing(m, directory)
		if err != nil {
			return d, err
		}
		if len(hosts) > 0 || !r.since(2, 1) {
			d.directories = append(d.directories, directory)
		}
	}
	if !slices.ContainsFunc(d.registries, func(g registry) bool { return g.host == anyHost && g.hasTree() }) {
		return d, nil
	}
	for _, directory := range d.directories {
		hosts, err := listing(m, directory)
		if err != nil {
			return d, err
		}
		hosts = slices.DeleteFunc(hosts, func(name string) bool {
			return slices.ContainsFunc(d.registries, func(g registry) bool {
				return name == g.host || name == filepath.Base(at.hostDirectory(g.host))
			})
		})
		if len(hosts) > 0 {
			return d, sdk.At(sdk.Precondition(fmt.Sprintf("%s also stands for %s, which %s describes: containerd would no longer look there",
				anyHost, strings.Join(hosts, ", "), directory), "list them in spec.registries, or remove their directories"), `spec.registries["`+anyHost+`"]`)
		}
	}
	return d, nil
}
