package settings

import (
	"fmt"
	"slices"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/sdk"
)

// builder translates a document for a release: into settings, and into violations where the release or the operating
// system lacks a field.
type builder struct {
	Desired
	release     Release
	all         []Setting
	unsupported []sdk.Violation
}

func (b *builder) set(field string, value any, path ...string) {
	b.all = append(b.all, Setting{Path: path, Value: value, Field: field})
}

// in is the path of keys that CRI has in its one table of version 2 and in the table of a plugin of version 3.
func (b *builder) in(plugin string, keys ...string) []string {
	if b.release.Written() == 2 {
		plugin = CRIPlugin
	}
	return append([]string{"plugins", plugin}, keys...)
}

func (b *builder) images(keys ...string) []string  { return b.in(ImagesPlugin, keys...) }
func (b *builder) runtime(keys ...string) []string { return b.in(RuntimePlugin, keys...) }

// lacks refuses a field that is given.
func (b *builder) lacks(given bool, field document.Path, message, hint string) {
	if given {
		b.unsupported = append(b.unsupported, sdk.Violation{Field: string(field), Message: message, Hint: hint})
	}
}

// since refuses a field that is given and came with a later release.
func (b *builder) since(given bool, field document.Path, what string, major, minor int) {
	b.lacks(given && !b.release.Since(major, minor), field,
		fmt.Sprintf("containerd %s has no %s: it came with %d.%d", b.release, what, major, minor),
		fmt.Sprintf("install containerd %d.%d or later, or remove it", major, minor))
}

// until refuses a field that is given and that containerd 2 dropped in a minor release.
func (b *builder) until(given bool, field document.Path, message, hint string, minor int) {
	b.lacks(given && b.release.Since(2, minor), field, fmt.Sprintf("containerd %s %s", b.release, message), hint)
}

// windows refuses what only Linux has.
func (b *builder) windows() {
	if b.OS != "windows" {
		return
	}
	linux := func(given bool, field document.Path, hint string) {
		b.lacks(given, field, "containerd has none of it on Windows", hint)
	}
	s := b.Spec
	linux(s.CgroupDriver != "", "spec.cgroupDriver", "remove it: Windows has no cgroups")
	linux(s.OOMScore != nil, "spec.oomScore", "remove it")
	linux(s.CDI != nil, "spec.cdi", "remove it")
	linux(s.NRI != nil && s.NRI.Enabled != nil && *s.NRI.Enabled, "spec.nri", "remove it")
	linux(s.TrustedCAs != "", "spec.trustedCAs", "add the certificates to the machine's store of trusted roots, or give them as ca of the registries")
	if p := s.Proxy; p != nil {
		const open = "every user of the machine can read the environment of a service of Windows"
		const hint = "use a proxy that admits the machine by its address, or one on the machine itself that signs in, and give its URL without credentials as "
		b.lacks(!p.HTTPSecret.IsZero(), "spec.proxy.httpSecret", open, hint+"spec.proxy.http")
		b.lacks(!p.HTTPSSecret.IsZero(), "spec.proxy.httpsSecret", open, hint+"spec.proxy.https")
	}
	for _, h := range b.Runtimes {
		linux(h.cgroupDriver != "", h.Field+".cgroupDriver", "remove it: Windows has no cgroups")
		linux(h.HasBaseSpec(), h.Field+".baseSpec", "remove it")
	}
}

func (b *builder) daemon() {
	s := b.Spec
	for _, f := range []struct {
		field, value string
		path         []string
	}{
		{"rootDir", s.RootDir, []string{"root"}},
		{"stateDir", s.StateDir, []string{"state"}},
		{"logLevel", s.LogLevel, []string{"debug", "level"}},
		{"metricsAddress", s.MetricsAddress, []string{"metrics", "address"}},
	} {
		if f.value != "" {
			b.set("spec."+f.field, f.value, f.path...)
		}
	}
	if s.OOMScore != nil {
		b.set("spec.oomScore", int64(*s.OOMScore), "oom_score")
	}
}

func (b *builder) interfaces() {
	if cdi := b.Spec.CDI; cdi != nil {
		const what = "Container Device Interface"
		linux, on := b.OS != "windows", cdi.Enabled != nil && *cdi.Enabled
		b.since(linux && on, "spec.cdi.enabled", what, 1, 7)
		b.since(linux && len(cdi.SpecDirs) > 0, "spec.cdi.specDirs", what, 1, 7)
		b.until(linux && cdi.Enabled != nil && !on, "spec.cdi.enabled", "has the "+what+" always on",
			"remove it, or give directories without device specifications as spec.cdi.specDirs", 4)
		if cdi.Enabled != nil && b.release.Since(1, 7) && !b.release.Since(2, 4) {
			b.set("spec.cdi.enabled", on, b.runtime("enable_cdi")...)
		}
		if len(cdi.SpecDirs) > 0 && b.release.Since(1, 7) {
			b.set("spec.cdi.specDirs", slices.Clone(cdi.SpecDirs), b.runtime("cdi_spec_dirs")...)
		}
	}
	if nri := b.Spec.NRI; nri != nil && nri.Enabled != nil {
		b.since(*nri.Enabled, "spec.nri.enabled", "such Node Resource Interface", 1, 7)
		if b.release.Since(1, 7) {
			b.set("spec.nri.enabled", !*nri.Enabled, "plugins", nriPlugin, "disable")
		}
	}
	if cni := b.Spec.CNI; cni != nil {
		b.since(len(cni.BinDirs) > 1, "spec.cni.binDirs", "list of directories for network plugins", 2, 1)
		if b.release.Since(2, 1) && len(cni.BinDirs) > 0 {
			b.set("spec.cni.binDirs", slices.Clone(cni.BinDirs), b.runtime("cni", "bin_dirs")...)
		} else if len(cni.BinDirs) > 0 {
			b.set("spec.cni.binDirs", cni.BinDirs[0], b.runtime("cni", "bin_dir")...)
		}
		if cni.ConfDir != "" {
			b.set("spec.cni.confDir", cni.ConfDir, b.runtime("cni", "conf_dir")...)
		}
	}
}
