package settings

import (
	"cmp"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// Resolve validates a document for an operating system, which determines the form of a path.
func Resolve(doc v1alpha1.ContainerRuntime, os string) (Desired, []sdk.Violation) {
	r := resolver{spec: doc.Spec, at: PathsOf(os)}
	d := Desired{OS: os, Spec: doc.Spec, Directories: doc.Spec.RegistryDirs}
	d.Version, d.patches = r.providerConfig("spec.providerConfig")
	r.scalars()
	r.interfaces()
	d.Runtimes = r.runtimes("spec.runtimes")
	r.defaultRuntime()
	d.Registries = r.registries("spec.registries")
	r.list("spec.registryDirs", r.spec.RegistryDirs, r.directory)
	r.refuse(!r.at.Windows && slices.ContainsFunc(r.spec.RegistryDirs, func(path string) bool { return strings.Contains(path, ":") }), "spec.registryDirs",
		"has a path with a colon, at which containerd splits it", "write each directory as an item of its own")
	r.refuse(slices.Contains(r.spec.RegistryDirs, r.at.Certs), "spec.registryDirs", "names the directory that spec.registries is written to",
		"remove it: it comes first anyway")
	d.headers = r.headers("spec.registryHeaders", r.spec.RegistryHeaders)
	d.Environment = r.environment()
	r.list("spec.imports", r.spec.Imports, func(at document.Path, pattern string) {
		r.path(at, checkPattern, pattern, "an absolute path or a pattern", "/etc/example/*.toml", `C:\ProgramData\example\*.toml`)
		r.refuse(pattern == r.at.Config || pattern == r.at.DropIn, at, "is a file that this document is written to", "remove it")
		r.file(at, pattern)
	})
	r.idle(d.patches)
	d.Warnings, d.Elsewhere = r.warnings, r.elsewhere
	return d, r.violations
}

// file warns of an import that is a name for containerd and was meant for several files: it expands * alone, and reads no directory.
func (r *resolver) file(at document.Path, name string) {
	switch {
	case strings.Contains(name, "*"):
	case strings.ContainsAny(name, "?[{"):
		r.warn(at, "has no *, so that containerd takes it for the name of one file: use * in place of the other signs")
	case strings.HasSuffix(name, ".d"):
		r.warn(at, "has the name of a directory, with which containerd does not start: write it like "+r.at.Join("DIRECTORY", "*.toml"))
	}
}

// idle refuses what asks for nothing, as a providerConfig without a patch does.
func (r *resolver) idle(patches []patch) {
	asked := r.spec
	if len(patches) == 0 && len(r.violations) == 0 {
		asked.ProviderConfig = nil
	}
	r.violations = append(r.violations, document.Refused(asked)...)
}

func (r *resolver) scalars() {
	s := r.spec
	if s.SandboxImage != "" {
		r.invalid(checkImage(s.SandboxImage), "spec.sandboxImage", "write it like registry.example.com/pause:3.10")
	}
	r.refuse(s.Snapshotter != "" && !isIdentifier(s.Snapshotter), "spec.snapshotter", "is not the name of a snapshotter",
		"use letters, digits, ., _ and -, as in overlayfs")
	known := strings.Fields("aufs blockfile btrfs cimfs devmapper erofs native overlayfs windows windows-lcow zfs")
	near := document.Nearest(s.Snapshotter, known)
	near = cmp.Or(map[string]string{"devicemapper": "devmapper", "vfs": "native", "overlay": "overlayfs"}[s.Snapshotter], near) // names of Docker
	if near != "" && !slices.Contains(append(known, "overlaybd"), s.Snapshotter) {
		r.warn("spec.snapshotter", "is none of containerd's own, so that it must be a proxy plugin of the machine's configuration: did you mean "+near+"?")
	}
	r.directory("spec.rootDir", s.RootDir)
	if within := volatile(s.RootDir); within != "" {
		r.warn("spec.rootDir", "is below "+within+", which a boot or a cleanup empties: images and containers are lost; use a directory of a disk")
	}
	r.directory("spec.stateDir", s.StateDir)
	if s.MetricsAddress != "" {
		r.invalid(checkAddress(s.MetricsAddress), "spec.metricsAddress", "write HOST:PORT, such as 127.0.0.1:1338 or [::1]:1338")
	}
}

// volatile returns the directory that a path is below and that does not outlast a boot, or "". Source: file-hierarchy(7).
func volatile(path string) string {
	for _, directory := range []string{"/run", "/var/run", "/tmp", "/var/tmp", "/dev/shm"} {
		if strings.HasPrefix(path+"/", directory+"/") {
			return directory
		}
	}
	return ""
}

// interfaces checks CDI and CNI. NRI cannot be invalid.
func (r *resolver) interfaces() {
	if cdi := r.spec.CDI; cdi != nil {
		r.list("spec.cdi.specDirs", cdi.SpecDirs, r.directory)
		r.refuse(len(cdi.SpecDirs) > 0 && cdi.Enabled != nil && !*cdi.Enabled, "spec.cdi.specDirs",
			"means nothing while spec.cdi.enabled is false", "remove one of the two")
	}
	if cni := r.spec.CNI; cni != nil {
		r.list("spec.cni.binDirs", cni.BinDirs, r.directory)
		r.directory("spec.cni.confDir", cni.ConfDir)
	}
}

// defaultRuntime refuses the built-in runtimes of the other system.
func (r *resolver) defaultRuntime() {
	if name := r.spec.DefaultRuntime; name != nil {
		_, listed := r.spec.Runtimes[*name]
		r.refuse(!listed && slices.Contains(v1alpha1.BuiltinRuntimes(!r.at.Windows), *name), "spec.defaultRuntime", "is not one of spec.runtimes",
			"list it there, or use "+strings.Join(v1alpha1.BuiltinRuntimes(r.at.Windows), " or "))
	}
}
