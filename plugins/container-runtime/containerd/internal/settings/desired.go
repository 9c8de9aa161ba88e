package settings

import (
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// Desired is the content of a valid document. Settings and Unsupported translate it for a release.
type Desired struct {
	OS   string
	Spec v1alpha1.ContainerRuntimeSpec
	// Version is providerConfig.version: the one to assume where no containerd is installed.
	Version    string
	Runtimes   []Runtime  // by name
	Registries []Registry // by host
	// Environment is the part of the daemon's environment that the document sets.
	Environment []Variable
	patches     []patch
	// headers are sent to every registry.
	headers map[string]v1alpha1.Secret
	// Directories describe registries besides ours. Others are the OCI runtimes that foreign files configure.
	Directories, Others []string
	Warnings            []sdk.Warning
	// Elsewhere are the paths of another operating system: the document is valid, but not for this one.
	Elsewhere []sdk.Violation
}

// AnyHost is the registry for every host that has none of its own.
const AnyHost = "_default"

// Registry describes how to pull the images of one host.
type Registry struct {
	field document.Path
	Host  string
	// Server is asked after the mirrors. Its URL is empty where it is the host of the image.
	Server  Endpoint
	Mirrors []Endpoint
	auth    *v1alpha1.RegistryAuth
	// login is the host that auth is for.
	login string
}

// Endpoint is a host that serves images.
type Endpoint struct {
	field  document.Path
	URL    string
	Access Access
}

// Access describes how to reach a host.
type Access struct {
	v1alpha1.RegistryAccess
	// Headers have their canonical names: containerd sends a name as it is written.
	Headers map[string]v1alpha1.Secret
}

func (a Access) empty() bool {
	return len(a.Capabilities)+len(a.Headers) == 0 && a.CA == "" && a.Client == nil && !a.SkipVerify && !a.OverridePath && a.DialTimeout == ""
}

// HasTree reports whether the registry needs a hosts.toml.
func (g Registry) HasTree() bool {
	return len(g.Mirrors) > 0 || g.Server.field != "" || !g.Server.Access.empty()
}

// IsServer reports whether a mirror is the server of the document, which then has the mirror's access.
func (g Registry) IsServer(mirror Endpoint) bool {
	return g.Server.field != "" && canonicalURL(mirror.URL) == canonicalURL(g.Server.URL)
}

// canonicalURL is equal for URLs of the same place.
func canonicalURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	port := map[string]string{"https": ":443", "http": ":80"}[u.Scheme]
	return u.Scheme + "://" + strings.TrimSuffix(strings.ToLower(u.Host), port) + strings.TrimSuffix(u.Path, "/")
}

// Runtime is a runtime by the name that a RuntimeClass uses.
type Runtime struct {
	Field document.Path
	Name  string
	// shim is the runtime_type.
	shim string
	// binary is the program of an OCI runtime, or the shim of any other.
	binary       string
	cgroupDriver string
	options      map[string]any
	Rlimits      map[string]v1alpha1.Rlimit
	// SpecPatch is a merge patch of the OCI specification.
	SpecPatch map[string]any
}

// HasBaseSpec reports whether the runtime has a base specification of its own.
func (h Runtime) HasBaseSpec() bool { return len(h.Rlimits)+len(h.SpecPatch) > 0 }

const (
	runcShim   = "io.containerd.runc.v2"
	runcV1Shim = "io.containerd.runc.v1"
)

// CgroupDriver returns the cgroup driver of the runtime runc, and the path of the field that sets it. The driver is empty if no field does.
func (d Desired) CgroupDriver() (driver, field string) {
	if runc := d.Spec.Runtimes["runc"]; runc.CgroupDriver != "" {
		return runc.CgroupDriver, "spec.runtimes.runc.cgroupDriver"
	}
	return d.Spec.CgroupDriver, "spec.cgroupDriver"
}

// IsOCI reports whether the shim runs an OCI runtime, which has a cgroup driver and a program.
func IsOCI(shim string) bool { return shim == runcShim || shim == runcV1Shim }

// Variable is a variable of the daemon's environment. Formatted or marshaled it is its name, never its value.
type Variable struct {
	Name  string
	Value v1alpha1.Secret
	// Secret keeps the value out of the unit: every user of the machine can read Environment=.
	Secret bool
}

// Format writes the name.
func (v Variable) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, v.Name) } // a fmt.State does not fail

// MarshalText returns the name, for logs.
func (v Variable) MarshalText() ([]byte, error) { return []byte(v.Name), nil }

func plainVariable(name, value string) Variable {
	return Variable{Name: name, Value: v1alpha1.NewSecret([]byte(value))}
}

// patch is a fragment of containerd's configuration as single values.
type patch struct {
	field document.Path
	// version is the version of the configuration that the patch is for, 0 for any.
	version int
	values  []Setting
}
