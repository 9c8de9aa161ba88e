package main

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// The tables of containerd's configuration that this plugin writes to. In version 2 all of CRI is in one; version 3
// divides it. Source: docs/cri/config.md of containerd, and `containerd config default` of every release.
const (
	criPlugin      = "io.containerd.grpc.v1.cri"
	imagesPlugin   = "io.containerd.cri.v1.images"
	runtimePlugin  = "io.containerd.cri.v1.runtime"
	nriPlugin      = "io.containerd.nri.v1.nri"
	transferPlugin = "io.containerd.transfer.v1.local"
)

// setting is one value of containerd's configuration. Formatted or logged it shows where it stands, never its value.
type setting struct {
	// path is the keys of its tables, then its own.
	path []string
	// value is a string, bool, int64, float64, []string, or of a patch an []any of these and of tables.
	value any
	// field is the field of the document that asks for it.
	field string
	// secret says that the value is not for everyone's eyes.
	secret bool
}

// Format shows the path.
func (s setting) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, dotted(s.path)) } // a fmt.State has nowhere to report to

// LogValue shows the path.
func (s setting) LogValue() slog.Value { return slog.StringValue(dotted(s.path)) }

// dotted is a path as TOML writes it.
func dotted(path []string) string {
	keys := slices.Clone(path)
	for i, key := range keys {
		if !regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(key) {
			keys[i] = strconv.Quote(key)
		}
	}
	return strings.Join(keys, ".")
}

// settings is what the document means in the words of a release, in the order of their paths, with the patches on top.
// Violations are patches that cannot be put there. What the release has no word for is not said here, see unsupported.go.
func (d desired) settings(r release) ([]setting, []sdk.Violation) {
	b := builder{desired: d, release: r}
	b.daemon()
	b.images()
	b.credentials()
	b.handlers()
	b.interfaces()
	violations := b.patch()
	b.cgroups()
	slices.SortStableFunc(b.all, func(a, b setting) int { return slices.Compare(a.path, b.path) })
	return b.all, violations
}

// builder puts settings where a release reads them.
type builder struct {
	desired
	release release
	all     []setting
}

func (b *builder) set(field string, value any, path ...string) {
	b.all = append(b.all, setting{path: path, value: value, field: field})
}

// split is the place of a setting of CRI: in version 2, and in version 3.
func (b *builder) split(two, three []string) []string {
	if b.release.written() == 2 {
		return append([]string{"plugins", criPlugin}, two...)
	}
	return append([]string{"plugins"}, three...)
}

// images3 and runtime3 are places in the two halves of CRI.
func (b *builder) images3(keys ...string) []string { return append([]string{imagesPlugin}, keys...) }

func (b *builder) runtime3(keys ...string) []string { return append([]string{runtimePlugin}, keys...) }

func (b *builder) daemon() {
	s := b.spec
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
	s := b.spec
	if s.SandboxImage != "" {
		b.set("spec.sandboxImage", s.SandboxImage, b.split([]string{"sandbox_image"}, b.images3("pinned_images", "sandbox"))...)
	}
	if s.Snapshotter != "" {
		b.set("spec.snapshotter", s.Snapshotter, b.split([]string{"containerd", "snapshotter"}, b.images3("snapshotter"))...)
	}
	if b.otherSnapshotter() {
		b.set("spec.snapshotter", true, "plugins", imagesPlugin, "use_local_image_pull")
	}
	if s.MaxConcurrentDownloads != nil {
		b.downloads(int64(*s.MaxConcurrentDownloads))
	}
	if slices.ContainsFunc(b.registries, registry.hasTree) {
		b.set("spec.registries", b.registryDirectories(), b.registryPath("config_path")...)
	} else if len(b.spec.RegistryDirs) > 0 {
		b.set("spec.registryDirs", b.registryDirectories(), b.registryPath("config_path")...)
	}
	if b.local() && !b.otherSnapshotter() {
		b.set(cmp.Or(b.fieldOfDirectories(), "spec.registries"), true, "plugins", imagesPlugin, "use_local_image_pull")
	}
}

// otherSnapshotter: since 2.1 the transfer service pulls, and unpacks for the snapshotter of the platform alone; with any
// other every pull fails, unless containerd pulls in the old way.
func (b *builder) otherSnapshotter() bool {
	standard := "overlayfs"
	if b.os == "windows" {
		standard = "windows"
	}
	return b.release.since(2, 1) && b.spec.Snapshotter != "" && b.spec.Snapshotter != standard
}

// local says whether containerd has to pull in the old way: since 2.1, the transfer service takes a list of directories
// for one.
func (b *builder) local() bool {
	uses := slices.ContainsFunc(b.registries, registry.hasTree) || len(b.spec.RegistryDirs) > 0
	return b.otherSnapshotter() || b.release.since(2, 1) && uses && len(b.directories) > 0
}

func (b *builder) fieldOfDirectories() string {
	if len(b.spec.RegistryDirs) > 0 {
		return "spec.registryDirs"
	}
	return ""
}

// registryDirectories are ours and then those of others, as containerd divides a list.
func (b *builder) registryDirectories() string {
	at := pathsOf(b.os)
	return strings.Join(append([]string{at.certs}, b.directories...), at.list())
}

// downloads: the transfer service has a limit of its own. With another limit than its default in CRI, containerd goes
// back to the old way of pulling; so that one is set only where it pulls so anyway: for a snapshotter, or for credentials.
func (b *builder) downloads(n int64) {
	const field = "spec.maxConcurrentDownloads"
	const key = "max_concurrent_downloads"
	if b.release.since(2, 1) {
		b.set(field, n, "plugins", transferPlugin, key)
	}
	signsIn := slices.ContainsFunc(b.registries, func(g registry) bool { return g.auth != nil })
	if !b.release.since(2, 1) || signsIn || b.local() {
		b.set(field, n, b.split([]string{key}, b.images3(key))...)
	}
}

func (b *builder) registryPath(keys ...string) []string {
	keys = append([]string{"registry"}, keys...)
	return b.split(keys, b.images3(keys...))
}

func (b *builder) credentials() {
	for _, name := range sortedKeys(b.headers) {
		b.all = append(b.all, setting{
			path: b.registryPath("headers", name), value: []string{string(b.headers[name].Reveal())},
			field: string(document.Path("spec").Field("registryHeaders").Key(name)), secret: true,
		})
	}
	for _, g := range b.registries {
		if g.auth == nil {
			continue
		}
		at := g.field.Field("auth")
		put := func(field, key, value string) {
			path := b.registryPath("configs", g.login, "auth", key)
			b.all = append(b.all, setting{path: path, value: value, field: string(at.Field(field)), secret: true})
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
	if cdi := b.spec.CDI; cdi != nil {
		// Since 2.4 it is always on, and the key is gone.
		if cdi.Enabled != nil && b.release.since(1, 7) && !b.release.since(2, 4) {
			b.set("spec.cdi.enabled", *cdi.Enabled, b.split([]string{"enable_cdi"}, b.runtime3("enable_cdi"))...)
		}
		if len(cdi.SpecDirs) > 0 && b.release.since(1, 7) {
			b.set("spec.cdi.specDirs", slices.Clone(cdi.SpecDirs), b.split([]string{"cdi_spec_dirs"}, b.runtime3("cdi_spec_dirs"))...)
		}
	}
	if nri := b.spec.NRI; nri != nil && nri.Enabled != nil && b.release.since(1, 7) {
		b.set("spec.nri.enabled", !*nri.Enabled, "plugins", nriPlugin, "disable")
	}
	if cni := b.spec.CNI; cni != nil {
		b.cni(*cni)
	}
}

func (b *builder) cni(cni v1alpha1.CNI) {
	at := func(key string) []string { return b.split([]string{"cni", key}, b.runtime3("cni", key)) }
	switch {
	case len(cni.BinDirs) == 0:
	case b.release.since(2, 1):
		b.set("spec.cni.binDirs", slices.Clone(cni.BinDirs), at("bin_dirs")...)
	default:
		b.set("spec.cni.binDirs", cni.BinDirs[0], at("bin_dir")...)
	}
	if cni.ConfDir != "" {
		b.set("spec.cni.confDir", cni.ConfDir, at("conf_dir")...)
	}
}
