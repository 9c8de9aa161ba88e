package settings

import (
	"fmt"
	"slices"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/sdk"
)

// unsupported is what a release, or the operating system, has no word for. Another provider may.
func (d Desired) Unsupported(r Release) []sdk.Violation {
	u := lacking{Desired: d, release: r}
	if d.OS == "windows" {
		u.windows()
	}
	u.daemon()
	for _, h := range d.Runtimes {
		u.runtime(h)
	}
	for _, g := range d.Registries {
		u.registry(g)
	}
	return u.all
}

type lacking struct {
	Desired
	release Release
	all     []sdk.Violation
}

func (u *lacking) refuse(given bool, field document.Path, message, hint string) {
	if given {
		u.all = append(u.all, sdk.Violation{Field: string(field), Message: message, Hint: hint})
	}
}

// has refuses a field that came with a later release.
func (u *lacking) has(given bool, field document.Path, what string, major, minor int) {
	u.refuse(given && !u.release.Since(major, minor), field,
		fmt.Sprintf("containerd %s has no %s: it came with %d.%d", u.release, what, major, minor),
		fmt.Sprintf("install containerd %d.%d or later, or remove it", major, minor))
}

func (u *lacking) daemon() {
	s, spec := u.Spec, document.Path("spec")
	if cdi := s.CDI; cdi != nil && u.OS != "windows" {
		at := spec.Field("cdi")
		on := cdi.Enabled != nil && *cdi.Enabled
		u.has(on, at.Field("enabled"), "Container Device Interface", 1, 7)
		u.has(len(cdi.SpecDirs) > 0, at.Field("specDirs"), "Container Device Interface", 1, 7)
		u.refuse(cdi.Enabled != nil && !on && u.release.Since(2, 4), at.Field("enabled"),
			fmt.Sprintf("containerd %s has the Container Device Interface always on", u.release),
			"remove it, or give directories without device specifications as spec.cdi.specDirs")
	}
	if nri := s.NRI; nri != nil {
		u.has(nri.Enabled != nil && *nri.Enabled, spec.Field("nri").Field("enabled"), "such Node Resource Interface", 1, 7)
	}
	if cni := s.CNI; cni != nil {
		u.has(len(cni.BinDirs) > 1, spec.Field("cni").Field("binDirs"), "list of directories for network plugins", 2, 1)
	}
	u.refuse(s.Snapshotter == "aufs" && u.release.Since(2, 0), spec.Field("snapshotter"),
		fmt.Sprintf("containerd %s has no such snapshotter any more", u.release), "use overlayfs")
}

func (u *lacking) runtime(h handler) {
	u.refuse(h.kind == runcV1Type && u.release.Since(2, 0), h.Field.Field("type"),
		fmt.Sprintf("containerd %s has no such type of runtime any more", u.release), "use "+runcType)
	if !IsOCI(h.kind) {
		return
	}
	for _, name := range sortedKeys(h.options) {
		at := h.Field.Field("options").Key(name)
		u.refuse(name == "CriuPath" && u.release.Since(2, 0), at,
			fmt.Sprintf("containerd %s has no such option any more", u.release), "put criu onto the daemon's path and remove it")
		u.has(name == "TaskApiAddress" || name == "TaskApiVersion", at, "such option", 2, 0)
	}
}

func (u *lacking) registry(g Registry) {
	// Until 2.0, a hosts.toml that names no host beside the server is passed over.
	u.refuse(g.Host == AnyHost && len(g.Mirrors) == 0 && g.Server.Url == "" && !g.Server.Access.empty() && !u.release.Since(2, 0), g.field,
		fmt.Sprintf("containerd %s needs a host to ask for %s", u.release, AnyHost), "give mirrors or a server, or list the hosts that it is for")
	u.refuse(g.auth != nil && u.release.Since(2, 7), g.field.Field("auth"),
		fmt.Sprintf("containerd %s takes no credentials in its configuration any more", u.release),
		"use a credential provider of the kubelet or imagePullSecrets of the pods, or give the header Authorization as headers")
	u.has(slices.Contains(g.Server.Access.Capabilities, "referrers"), g.field.Field("capabilities"), "capability referrers", 2, 2)
	for _, mirror := range g.Mirrors {
		u.has(slices.Contains(mirror.Access.Capabilities, "referrers"), mirror.field.Field("capabilities"), "capability referrers", 2, 2)
	}
	const timeout = "timeout for connections to registries"
	u.has(g.Server.Access.DialTimeout != "" && !slices.ContainsFunc(g.Mirrors, g.Lends), g.field.Field("dialTimeout"), timeout, 2, 1)
	for _, mirror := range g.Mirrors {
		u.has(mirror.Access.DialTimeout != "", mirror.field.Field("dialTimeout"), timeout, 2, 1)
	}
}

// windows is what only Linux has.
func (u *lacking) windows() {
	s, spec := u.Spec, document.Path("spec")
	linux := func(given bool, field document.Path, hint string) {
		u.refuse(given, field, "containerd has none of it on Windows", hint)
	}
	linux(s.CgroupDriver != "", spec.Field("cgroupDriver"), "remove it: Windows has no cgroups")
	linux(s.OOMScore != nil, spec.Field("oomScore"), "remove it")
	linux(s.CDI != nil, spec.Field("cdi"), "remove it")
	linux(s.NRI != nil && s.NRI.Enabled != nil && *s.NRI.Enabled, spec.Field("nri"), "remove it")
	linux(s.TrustedCAs != "", spec.Field("trustedCAs"),
		"add the certificates to the machine's store of trusted roots, or give them as ca of the registries")
	if p := s.Proxy; p != nil {
		const open = "every user of the machine can read the environment of a service of Windows"
		const hint = "use a proxy that admits the machine by its address, or one on the machine itself that signs in, and give its URL without credentials as "
		at := spec.Field("proxy")
		u.refuse(!p.HTTPSecret.IsZero(), at.Field("httpSecret"), open, hint+string(at.Field("http")))
		u.refuse(!p.HTTPSSecret.IsZero(), at.Field("httpsSecret"), open, hint+string(at.Field("https")))
	}
	for _, h := range u.Runtimes {
		linux(h.cgroupDriver != "", h.Field.Field("cgroupDriver"), "remove it: Windows has no cgroups")
		linux(h.HasBaseSpec(), h.Field.Field("baseSpec"), "remove it")
	}
}
