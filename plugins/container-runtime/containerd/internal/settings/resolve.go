package settings

import (
	"reflect"
	"slices"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// resolve is pure: it reads the document and nothing else. The operating system decides what a path looks like.
func Resolve(doc v1alpha1.ContainerRuntime, os string) (Desired, []sdk.Violation) {
	r := resolver{spec: doc.Spec, at: PathsOf(os)}
	spec := document.Path("spec")
	d := Desired{OS: os, Spec: doc.Spec, Imports: doc.Spec.Imports}
	d.Version, d.patches = r.providerConfig(spec.Field("providerConfig"))
	r.scalars(spec)
	r.interfaces(spec)
	d.Runtimes = r.runtimes(spec.Field("runtimes"))
	r.defaultRuntime(spec.Field("defaultRuntime"))
	d.Registries = r.registries(spec.Field("registries"))
	r.directories(spec.Field("registryDirs"), r.spec.RegistryDirs)
	if slices.Contains(r.spec.RegistryDirs, r.at.RegistryFiles) {
		r.refuse(spec.Field("registryDirs"), "names the directory that spec.registries is written to", "remove it: it comes first anyway")
	}
	d.headers = r.headers(spec.Field("registryHeaders"), r.spec.RegistryHeaders)
	d.Directories = r.spec.RegistryDirs
	d.Environment = r.environment(spec)
	r.imports(spec.Field("imports"))
	r.askedFor(spec, d.patches)
	d.Warnings = r.warnings
	return d, r.violations
}

// askedFor refuses what would do nothing.
func (r *resolver) askedFor(spec document.Path, patches []patch) {
	const hint = "write what is wanted, or remove it"
	asked := r.spec
	asked.Provider, asked.ProviderConfig = "", nil
	if reflect.ValueOf(asked).IsZero() && len(patches) == 0 && len(r.violations) == 0 {
		r.refuse(spec, "asks for nothing", "write what is wanted, or remove the document")
	}
	nothing := func(name string, value any) {
		if v := reflect.ValueOf(value); !v.IsNil() && v.Elem().IsZero() {
			r.refuse(spec.Field(name), "asks for nothing", hint)
		}
	}
	nothing("cdi", r.spec.CDI)
	nothing("nri", r.spec.NRI)
	nothing("cni", r.spec.CNI)
	nothing("proxy", r.spec.Proxy)
}

func (r *resolver) scalars(spec document.Path) {
	s := r.spec
	r.oneOf(spec.Field("cgroupDriver"), s.CgroupDriver, cgroupDrivers()...)
	r.oneOf(spec.Field("logLevel"), s.LogLevel, "trace", "debug", "info", "warn", "error", "fatal", "panic")
	if s.SandboxImage != "" {
		if err := checkImage(s.SandboxImage); err != nil {
			r.refuse(spec.Field("sandboxImage"), err.Error(), "write it like registry.example.com/pause:3.10")
		}
	}
	if s.Snapshotter != "" && !isIdentifier(s.Snapshotter) {
		r.refuse(spec.Field("snapshotter"), "is not the name of a snapshotter", "use letters, digits, ., _ and -, as in overlayfs")
	}
	r.directory(spec.Field("rootDir"), s.RootDir)
	r.directory(spec.Field("stateDir"), s.StateDir)
	if s.RootDir != "" && s.RootDir == s.StateDir {
		r.refuse(spec.Field("stateDir"), "must be another directory than spec.rootDir", "give it a directory of its own: what it holds ends with a boot")
	}
	if n := s.MaxConcurrentDownloads; n != nil && *n < 1 {
		r.refuse(spec.Field("maxConcurrentDownloads"), "must be at least 1", "")
	}
	if s.MetricsAddress != "" {
		if err := checkAddress(s.MetricsAddress); err != nil {
			r.refuse(spec.Field("metricsAddress"), err.Error(), "write HOST:PORT, such as 127.0.0.1:1338 or [::1]:1338")
		}
	}
	if n := s.OOMScore; n != nil && (*n < -1000 || *n > 1000) {
		r.refuse(spec.Field("oomScore"), "must be from -1000 to 1000", "")
	}
}

// interfaces checks what stands for CDI and CNI; NRI has nothing that could be wrong.
func (r *resolver) interfaces(spec document.Path) {
	if cdi := r.spec.CDI; cdi != nil {
		r.directories(spec.Field("cdi").Field("specDirs"), cdi.SpecDirs)
		if len(cdi.SpecDirs) > 0 && cdi.Enabled != nil && !*cdi.Enabled {
			r.refuse(spec.Field("cdi").Field("specDirs"), "means nothing while spec.cdi.enabled is false", "remove one of the two")
		}
	}
	if cni := r.spec.CNI; cni != nil {
		r.directories(spec.Field("cni").Field("binDirs"), cni.BinDirs)
		r.directory(spec.Field("cni").Field("confDir"), cni.ConfDir)
	}
}

func (r *resolver) imports(field document.Path) {
	for i, pattern := range r.spec.Imports {
		at := field.Index(i)
		switch err := checkPattern(pattern, r.at.Windows); {
		case err != nil:
			r.refuse(at, err.Error(), r.pathHint("an absolute path or a pattern", "/etc/example/*.toml", `C:\ProgramData\example\*.toml`))
		case slices.Contains(r.spec.Imports[:i], pattern):
			r.refuse(at, "is listed twice", "remove one of the two")
		case pattern == r.at.Config || pattern == r.at.DropIn:
			r.refuse(at, "is a file that this document is written to", "remove it")
		}
	}
}
