package settings

import (
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
)

func (b *builder) pulls() {
	s := b.Spec
	if s.SandboxImage != "" && b.release.Written() == 2 {
		b.set("spec.sandboxImage", s.SandboxImage, b.images("sandbox_image")...)
	} else if s.SandboxImage != "" {
		b.set("spec.sandboxImage", s.SandboxImage, b.images("pinned_images", "sandbox")...)
	}
	b.until(s.Snapshotter == "aufs", "spec.snapshotter", "has no such snapshotter any more", "use overlayfs", 0)
	if s.Snapshotter != "" && b.release.Written() == 2 {
		b.set("spec.snapshotter", s.Snapshotter, b.images("containerd", "snapshotter")...)
	} else if s.Snapshotter != "" {
		b.set("spec.snapshotter", s.Snapshotter, b.images("snapshotter")...)
	}
	// Since 2.1 the transfer service pulls. It unpacks for the platform's own snapshotter alone, and takes a list of
	// directories of registries for one directory: anything else needs the pull of before.
	local := ""
	tree := slices.ContainsFunc(b.Registries, Registry.HasTree)
	standard := map[string]string{"linux": "overlayfs", "windows": "windows"}[b.OS]
	switch directories := len(s.RegistryDirs) > 0; {
	case !b.release.Since(2, 1):
	case s.Snapshotter != "" && s.Snapshotter != standard:
		local = "spec.snapshotter"
	case directories:
		local = "spec.registryDirs"
	case tree && len(b.Directories) > 0:
		local = "spec.registries"
	}
	if local != "" {
		b.set(local, true, "plugins", ImagesPlugin, "use_local_image_pull")
	}
	directories := strings.Join(append([]string{PathsOf(b.OS).Certs}, b.Directories...), PathsOf(b.OS).ListSeparator())
	if tree {
		b.set("spec.registries", directories, b.images("registry", "config_path")...)
	} else if len(s.RegistryDirs) > 0 {
		b.set("spec.registryDirs", directories, b.images("registry", "config_path")...)
	}
	if s.MaxConcurrentDownloads != nil {
		b.downloads(int64(*s.MaxConcurrentDownloads), local != "")
	}
}

// downloads limits the transfer service, which has a limit of its own. A limit of CRI that is not the default makes
// containerd use the pull of before, so it is set only where containerd uses that anyway.
func (b *builder) downloads(n int64, local bool) {
	const field, key = "spec.maxConcurrentDownloads", "max_concurrent_downloads"
	if b.release.Since(2, 1) {
		b.set(field, n, "plugins", transferPlugin, key)
	}
	if !b.release.Since(2, 1) || local || slices.ContainsFunc(b.Registries, func(g Registry) bool { return g.auth != nil }) {
		b.set(field, n, b.images(key)...)
	}
}

func (b *builder) registries() {
	secret := func(field document.Path, value any, keys ...string) {
		b.all = append(b.all, Setting{Path: b.images(append([]string{"registry"}, keys...)...), Value: value, Field: string(field), Secret: true})
	}
	for _, name := range sortedKeys(b.headers) {
		secret(document.Path("spec.registryHeaders").Key(name), []string{string(b.headers[name].Reveal())}, "headers", name)
	}
	for _, g := range b.Registries {
		b.registry(g)
		if g.auth == nil {
			continue
		}
		if !g.auth.IdentityToken.IsZero() {
			secret(g.field+".auth.identityToken", string(g.auth.IdentityToken.Reveal()), "configs", g.login, "auth", "identitytoken")
			continue
		}
		secret(g.field+".auth.username", g.auth.Username, "configs", g.login, "auth", "username")
		secret(g.field+".auth.password", string(g.auth.Password.Reveal()), "configs", g.login, "auth", "password")
	}
}

// registry refuses what a release cannot do for a registry.
func (b *builder) registry(g Registry) {
	// Before 2.0, containerd ignores a hosts.toml without any host beside the server.
	b.lacks(g.Host == AnyHost && len(g.Mirrors) == 0 && g.Server.URL == "" && !g.Server.Access.empty() && !b.release.Since(2, 0), g.field,
		"containerd "+b.release.String()+" needs a host to ask for "+AnyHost, "give mirrors or a server, or list the hosts that it is for")
	b.until(g.auth != nil, g.field+".auth", "takes no credentials in its configuration any more",
		"use a credential provider of the kubelet or imagePullSecrets of the pods, or give the header Authorization as headers", 7)
	hosts := slices.Clone(g.Mirrors)
	if !slices.ContainsFunc(g.Mirrors, g.IsServer) {
		hosts = slices.Insert(hosts, 0, Endpoint{field: g.field, Access: g.Server.Access})
	}
	for _, e := range hosts {
		b.since(slices.Contains(e.Access.Capabilities, "referrers"), e.field+".capabilities", "capability referrers", 2, 2)
		b.since(e.Access.DialTimeout != "", e.field+".dialTimeout", "timeout for connections to registries", 2, 1)
	}
}
