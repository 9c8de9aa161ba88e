package settings

import (
	"cmp"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// settings is what the document means in the words of a release, in the order of their paths, with the patches on top.
// Violations are patches that cannot be put there. What the release has no word for is not said here, see unsupported.go.
func (d Desired) Settings(r Release) ([]Setting, []sdk.Violation) {
	b := builder{Desired: d, release: r}
	b.daemon()
	b.images()
	b.credentials()
	b.handlers()
	b.interfaces()
	violations := b.patch()
	b.cgroups()
	slices.SortStableFunc(b.all, func(a, b Setting) int { return slices.Compare(a.Path, b.Path) })
	return b.all, violations
}

// builder puts settings where a release reads them.
type builder struct {
	Desired
	release Release
	all     []Setting
}

func (b *builder) set(field string, value any, path ...string) {
	b.all = append(b.all, Setting{Path: path, Value: value, Field: field})
}

// split is the place of a setting of CRI: in version 2, and in version 3.
func (b *builder) split(two, three []string) []string {
	if b.release.written() == 2 {
		return append([]string{"plugins", CRIPlugin}, two...)
	}
	return append([]string{"plugins"}, three...)
}

// images3 and runtime3 are places in the two halves of CRI.
func (b *builder) images3(keys ...string) []string { return append([]string{ImagesPlugin}, keys...) }

func (b *builder) runtime3(keys ...string) []string { return append([]string{RuntimePlugin}, keys...) }

func (b *builder) daemon() {
	s := b.Spec
	text := func(field, value string, path ...string) {
		if value != "" {
			b.set("spec."+field, value, path...)
		}
	}
	text("rootDir", s.RootDir, "root")
	text("stateDir", s.StateDir, "state")
	text("logLevel", s.LogLevel, "debug", "level")
	text("metricsAddress", s.MetricsAddress, "metrics", "address")
	if s.OOMScore != nil {
		b.set("spec.oomScore", int64(*s.OOMScore), "oom_score")
	}
}

func (b *builder) images() {
	s := b.Spec
	if s.SandboxImage != "" {
		b.set("spec.sandboxImage", s.SandboxImage, b.split([]string{"sandbox_image"}, b.images3("pinned_images", "sandbox"))...)
	}
	if s.Snapshotter != "" {
		b.set("spec.snapshotter", s.Snapshotter, b.split([]string{"containerd", "snapshotter"}, b.images3("snapshotter"))...)
	}
	if b.otherSnapshotter() {
		b.set("spec.snapshotter", true, "plugins", ImagesPlugin, "use_local_image_pull")
	}
	if s.MaxConcurrentDownloads != nil {
		b.downloads(int64(*s.MaxConcurrentDownloads))
	}
	if slices.ContainsFunc(b.Registries, Registry.HasTree) {
		b.set("spec.registries", b.registryDirectories(), b.registryPath("config_path")...)
	} else if len(b.Spec.RegistryDirs) > 0 {
		b.set("spec.registryDirs", b.registryDirectories(), b.registryPath("config_path")...)
	}
	if b.local() && !b.otherSnapshotter() {
		b.set(cmp.Or(b.fieldOfDirectories(), "spec.registries"), true, "plugins", ImagesPlugin, "use_local_image_pull")
	}
}

// otherSnapshotter: since 2.1 the transfer service pulls, and unpacks for the snapshotter of the platform alone; with any
// other every pull fails, unless containerd pulls in the old way.
func (b *builder) otherSnapshotter() bool {
	standard := "overlayfs"
	if b.OS == "windows" {
		standard = "windows"
	}
	return b.release.Since(2, 1) && b.Spec.Snapshotter != "" && b.Spec.Snapshotter != standard
}

// local says whether containerd has to pull in the old way: since 2.1, the transfer service takes a list of directories
// for one.
func (b *builder) local() bool {
	uses := slices.ContainsFunc(b.Registries, Registry.HasTree) || len(b.Spec.RegistryDirs) > 0
	return b.otherSnapshotter() || b.release.Since(2, 1) && uses && len(b.Directories) > 0
}

func (b *builder) fieldOfDirectories() string {
	if len(b.Spec.RegistryDirs) > 0 {
		return "spec.registryDirs"
	}
	return ""
}

// registryDirectories are ours and then those of others, as containerd divides a list.
func (b *builder) registryDirectories() string {
	at := PathsOf(b.OS)
	return strings.Join(append([]string{at.RegistryFiles}, b.Directories...), at.List())
}

// downloads: the transfer service has a limit of its own. With another limit than its default in CRI, containerd goes
// back to the old way of pulling; so that one is set only where it pulls so anyway: for a snapshotter, or for credentials.
func (b *builder) downloads(n int64) {
	const field = "spec.maxConcurrentDownloads"
	const key = "max_concurrent_downloads"
	if b.release.Since(2, 1) {
		b.set(field, n, "plugins", transferPlugin, key)
	}
	signsIn := slices.ContainsFunc(b.Registries, func(g Registry) bool { return g.auth != nil })
	if !b.release.Since(2, 1) || signsIn || b.local() {
		b.set(field, n, b.split([]string{key}, b.images3(key))...)
	}
}

func (b *builder) registryPath(keys ...string) []string {
	keys = append([]string{"registry"}, keys...)
	return b.split(keys, b.images3(keys...))
}

func (b *builder) credentials() {
	for _, name := range sortedKeys(b.headers) {
		b.all = append(b.all, Setting{
			Path: b.registryPath("headers", name), Value: []string{string(b.headers[name].Reveal())},
			Field: string(document.Path("spec").Field("registryHeaders").Key(name)), Secret: true,
		})
	}
	for _, g := range b.Registries {
		if g.auth == nil {
			continue
		}
		at := g.field.Field("auth")
		put := func(field, key, value string) {
			path := b.registryPath("configs", g.login, "auth", key)
			b.all = append(b.all, Setting{Path: path, Value: value, Field: string(at.Field(field)), Secret: true})
		}
		if !g.auth.IdentityToken.IsZero() {
			put("identityToken", "identitytoken", string(g.auth.IdentityToken.Reveal()))
			continue
		}
		put("username", "username", g.auth.Username)
		put("password", "password", string(g.auth.Password.Reveal()))
	}
}

func (b *builder) interfaces() {
	if cdi := b.Spec.CDI; cdi != nil {
		// Since 2.4 it is always on, and the key is gone.
		if cdi.Enabled != nil && b.release.Since(1, 7) && !b.release.Since(2, 4) {
			b.set("spec.cdi.enabled", *cdi.Enabled, b.split([]string{"enable_cdi"}, b.runtime3("enable_cdi"))...)
		}
		if len(cdi.SpecDirs) > 0 && b.release.Since(1, 7) {
			b.set("spec.cdi.specDirs", slices.Clone(cdi.SpecDirs), b.split([]string{"cdi_spec_dirs"}, b.runtime3("cdi_spec_dirs"))...)
		}
	}
	if nri := b.Spec.NRI; nri != nil && nri.Enabled != nil && b.release.Since(1, 7) {
		b.set("spec.nri.enabled", !*nri.Enabled, "plugins", nriPlugin, "disable")
	}
	if cni := b.Spec.CNI; cni != nil {
		b.cni(*cni)
	}
}

func (b *builder) cni(cni v1alpha1.CNI) {
	at := func(key string) []string { return b.split([]string{"cni", key}, b.runtime3("cni", key)) }
	switch {
	case len(cni.BinDirs) == 0:
	case b.release.Since(2, 1):
		b.set("spec.cni.binDirs", slices.Clone(cni.BinDirs), at("bin_dirs")...)
	default:
		b.set("spec.cni.binDirs", cni.BinDirs[0], at("bin_dir")...)
	}
	if cni.ConfDir != "" {
		b.set("spec.cni.confDir", cni.ConfDir, at("conf_dir")...)
	}
}
