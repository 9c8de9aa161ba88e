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

// access is how a host is reached, found to be right.
type Access struct {
	v1alpha1.RegistryAccess
	// headers by the names that HTTP gives them: containerd sends a name as it is written.
	Headers map[string]v1alpha1.Secret
}

func (a Access) empty() bool {
	return len(a.Capabilities)+len(a.Headers) == 0 && a.CA == "" && a.Client == nil && !a.SkipVerify && !a.OverridePath && a.DialTimeout == ""
}

// secret says whether what containerd has to be told is not for everyone's eyes.
func (a Access) Secret() bool { return len(a.Headers) > 0 }

// desired is a document that was found to be right. What a release of containerd makes of it is in settings.go,
// what it has no word for in unsupported.go.
type Desired struct {
	// os is the target's operating system.
	OS   string
	Spec v1alpha1.ContainerRuntimeSpec
	// version is the one to assume where no containerd is installed, as providerConfig has it. Empty where it has none.
	Version string
	// imports are for the main file's list. They are no setting: the list has other entries besides.
	Imports    []string
	Runtimes   []handler  // by name
	Registries []Registry // by host
	// environment is the daemon's, as far as it is ours.
	Environment []Variable
	patches     []patch
	// headers go to every registry.
	headers map[string]v1alpha1.Secret
	// directories describe registries besides ours, and others are the OCI runtimes that files of other people name.
	Directories, Others []string
	Warnings            []sdk.Warning
}

// patch is a fragment of containerd's configuration as single values.
type patch struct {
	field document.Path
	// version of the configuration that it is for, 0 for any.
	version int
	values  []patched
}

type patched struct {
	path  []string
	value any
}

// variable is one of the daemon's environment. Formatted or logged it shows its name, never its value.
type Variable struct {
	Name  string
	Value v1alpha1.Secret
	// secret says that the value is not for everyone's eyes: units show Environment= to every user of the machine.
	Secret bool
}

// Format shows the name.
func (v Variable) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, v.Name) } // a fmt.State has nowhere to report to

// a fmt.State has nowhere to report to

// MarshalText returns the name, for logs.
func (v Variable) MarshalText() ([]byte, error) { return []byte(v.Name), nil }

func (v Variable) Text() string { return v.Name + "=" + string(v.Value.Reveal()) }

func plainVariable(name, value string) Variable {
	return Variable{Name: name, Value: v1alpha1.NewSecret([]byte(value))}
}

// anyHost is the registry that stands for every one that is not listed.
const AnyHost = "_default"

// registry is how the images of one host are pulled.
type Registry struct {
	field document.Path
	Host  string
	// server is asked last. Its url is empty where it is the host of the image, whichever that is.
	Server  Endpoint
	Mirrors []Endpoint
	auth    *v1alpha1.RegistryAuth
	// login is the host that auth is for.
	login string
}

// endpoint is a host that is asked for images.
type Endpoint struct {
	field  document.Path
	Url    string
	Access Access
}

// hasTree says whether there is anything that a hosts.toml can say.
func (g Registry) HasTree() bool {
	return len(g.Mirrors) > 0 || g.Server.field != "" || !g.Server.Access.empty()
}

// sameURL is equal for URLs that lead to the same place.
func sameURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	host := strings.ToLower(u.Host)
	switch u.Scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	}
	return u.Scheme + "://" + host + strings.TrimSuffix(u.Path, "/")
}

// handler is a runtime by the name that a RuntimeClass calls it.
type handler struct {
	Field document.Path
	Name  string
	kind  string // runtime_type
	// binary is the program of an OCI runtime, or the shim of any other.
	binary string
	// cgroupDriver is its own, empty when it has none.
	cgroupDriver string
	options      map[string]any
	Rlimits      map[string]v1alpha1.Rlimit
	// specPatch is a merge patch of the OCI specification.
	SpecPatch map[string]any
}

func (h handler) HasBaseSpec() bool { return len(h.Rlimits)+len(h.SpecPatch) > 0 }

// The types of runtimes that containerd itself brings along, and those of the well known others.
const (
	runcType   = "io.containerd.runc.v2"
	runcV1Type = "io.containerd.runc.v1"
	hcsType    = "io.containerd.runhcs.v1"
)

// isOCI says whether the shim runs an OCI runtime: it then has a cgroup driver and takes the name of a program.
func IsOCI(kind string) bool { return kind == runcType || kind == runcV1Type }

// builtin are the runtimes that containerd has without any configuration, its own default first.
func builtin(windows bool) []string {
	if windows {
		return []string{"runhcs-wcow-process", "runhcs-wcow-hypervisor"}
	}
	return []string{"runc"}
}

// lends says whether the server has its access from this mirror, because it is the same.
func (g Registry) Lends(mirror Endpoint) bool {
	return g.Server.field != "" && sameURL(mirror.Url) == sameURL(g.Server.Url)
}
