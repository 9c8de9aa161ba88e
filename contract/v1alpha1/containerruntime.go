package v1alpha1

import "encoding/json"

// ContainerRuntime configures the container runtime of a node: what the kubelet starts containers and pulls images with.
type ContainerRuntime struct {
	Header
	// Spec says how the runtime shall be.
	Spec ContainerRuntimeSpec `json:"spec"`
}

// ContainerRuntimeSpec is the desired state of a ContainerRuntime document. What is left out is left to the runtime:
// nothing is written for it, and what an administrator wrote stays. Source: the Container Runtime Interface, the OCI
// specifications (runtime, image, distribution), the Container Device, Network and Node Resource Interfaces.
type ContainerRuntimeSpec struct {
	// Provider names the plugin, for example containerd. Left out, the host chooses.
	Provider string `json:"provider,omitempty"`
	// CgroupDriver says who keeps the cgroups of containers, systemd or cgroupfs: of every OCI runtime, those included
	// that the runtime's own configuration names already, unless runtimes gives one another. It must be the kubelet's.
	CgroupDriver string `json:"cgroupDriver,omitempty"`
	// SandboxImage is the image of the container that holds a pod's namespaces, by its whole reference: HOST/NAME:TAG or
	// HOST/NAME@DIGEST. On a node of kubeadm it must be the one that kubeadm wants.
	SandboxImage string `json:"sandboxImage,omitempty"`
	// Snapshotter is how the layers of an image become a file system, by the runtime's name for it, such as overlayfs.
	Snapshotter string `json:"snapshotter,omitempty"`
	// RootDir is where images and containers are kept, an absolute path.
	RootDir string `json:"rootDir,omitempty"`
	// StateDir is where is kept what ends with a boot, an absolute path other than rootDir.
	StateDir string `json:"stateDir,omitempty"`
	// MaxConcurrentDownloads is how many layers of an image are fetched at once, at least 1.
	MaxConcurrentDownloads *int `json:"maxConcurrentDownloads,omitempty"`
	// LogLevel is the least that is logged: trace, debug, info, warn, error, fatal or panic.
	LogLevel string `json:"logLevel,omitempty"`
	// MetricsAddress is HOST:PORT where the runtime serves its metrics, to anyone who can reach it and without TLS.
	MetricsAddress string `json:"metricsAddress,omitempty"`
	// OOMScore adjusts how soon the kernel ends the daemon when memory runs out, from -1000 (never) to 1000 (first).
	// Source: proc_pid_oom_score_adj(5).
	OOMScore *int `json:"oomScore,omitempty"`
	// Runtimes maps the name of a runtime, the handler of a RuntimeClass, to what runs its containers. A name is a DNS
	// label. Runtimes that are not listed stay as they are.
	Runtimes map[string]Runtime `json:"runtimes,omitempty"`
	// DefaultRuntime is the runtime of pods that name none: one of runtimes, or the runtime's own default. Empty text is
	// that default as well, whatever the configuration names now.
	DefaultRuntime *string `json:"defaultRuntime,omitempty"`
	// CDI is the Container Device Interface, by which containers get devices.
	CDI *CDI `json:"cdi,omitempty"`
	// NRI is the Node Resource Interface, by which plugins change containers.
	NRI *NRI `json:"nri,omitempty"`
	// Registries maps the host of an image's reference, HOST or HOST:PORT, to how such images are pulled; _default is for
	// every host that is not listed. The host of short references is that of Docker Hub.
	Registries map[string]Registry `json:"registries,omitempty"`
	// RegistryDirs are further directories that describe registries, absolute paths, in their order. They count for hosts
	// that registries does not list. Directories that the runtime's configuration names already stay.
	RegistryDirs []string `json:"registryDirs,omitempty"`
	// RegistryHeaders are sent with every request to any registry.
	RegistryHeaders map[string]Secret `json:"registryHeaders,omitempty"`
	// Proxy is how the daemon gets out to registries.
	Proxy *Proxy `json:"proxy,omitempty"`
	// TrustedCAs are certificates, PEM, that every pull trusts beside those of the system.
	TrustedCAs string `json:"trustedCAs,omitempty"`
	// CNI says where the network plugins are.
	CNI *CNI `json:"cni,omitempty"`
	// Imports are further files of the runtime's own configuration that it reads besides: absolute paths, or patterns such
	// as /etc/example/*.toml.
	Imports []string `json:"imports,omitempty"`
	// ProviderConfig is read by the provider alone.
	ProviderConfig json.RawMessage `json:"providerConfig,omitempty"`
}

// Runtime is what runs the containers of one handler.
type Runtime struct {
	// Type is the provider's name for the kind of runtime, such as io.containerd.runc.v2. Left out, it follows from a
	// name that is well known: runc, crun, kata, runsc, runhcs and those that begin like kata- and runhcs-.
	Type string `json:"type,omitempty"`
	// Binary is the absolute path of the program: of an OCI runtime such as crun itself, or of the shim where that is the
	// runtime, as with Kata Containers. Left out, the one of this name on the daemon's path.
	Binary string `json:"binary,omitempty"`
	// CgroupDriver says who keeps the cgroups, systemd or cgroupfs. Left out, that of the spec. Only OCI runtimes have one.
	CgroupDriver string `json:"cgroupDriver,omitempty"`
	// Options are the runtime's own, in its own words and types.
	Options map[string]json.RawMessage `json:"options,omitempty"`
	// BaseSpec is what each container of this runtime starts from.
	BaseSpec *BaseSpec `json:"baseSpec,omitempty"`
}

// BaseSpec is the part of an OCI runtime specification that every container starts from.
type BaseSpec struct {
	// Rlimits maps a resource limit, such as RLIMIT_NOFILE, to its value. Limits that are not listed are the daemon's own.
	Rlimits map[string]Rlimit `json:"rlimits,omitempty"`
	// Patch is a JSON merge patch (RFC 7396) of the rest of the specification: a table is merged, null removes, any
	// other value replaces. Limits of resources go into rlimits.
	Patch json.RawMessage `json:"patch,omitempty"`
}

// Rlimit is a limit of a resource. Source: getrlimit(2).
type Rlimit struct {
	// Soft is what is in effect, in the unit of the resource. A process may raise it up to hard.
	Soft uint64 `json:"soft"`
	// Hard is the highest that soft can be raised to, in the unit of the resource. 18446744073709551615 means no limit.
	Hard uint64 `json:"hard"`
}

// CDI is the Container Device Interface.
type CDI struct {
	// Enabled says whether containers get devices by it.
	Enabled *bool `json:"enabled,omitempty"`
	// SpecDirs are the directories that describe devices, absolute paths. Of two that describe one, the later counts.
	SpecDirs []string `json:"specDirs,omitempty"`
}

// NRI is the Node Resource Interface.
type NRI struct {
	// Enabled says whether its plugins are run.
	Enabled *bool `json:"enabled,omitempty"`
}

// CNI is where the plugins of the Container Network Interface are.
type CNI struct {
	// BinDirs are the directories of the plugins' programs, absolute paths. Some versions of some runtimes know one alone.
	BinDirs []string `json:"binDirs,omitempty"`
	// ConfDir is the directory of the networks' configurations, an absolute path.
	ConfDir string `json:"confDir,omitempty"`
}

// Registry is how the images of one registry are pulled: from the mirrors in their order, and then from the server.
type Registry struct {
	// Server is the URL of the registry itself, https://HOST[:PORT][/PATH] or http://. It is asked when no mirror has
	// the image. Left out, https:// and the host of the image's reference. The URL of a mirror means that nothing but
	// the mirrors is ever asked; it then takes its access from that mirror.
	Server string `json:"server,omitempty"`
	// Mirrors are asked before the server, in their order.
	Mirrors []RegistryMirror `json:"mirrors,omitempty"`
	// RegistryAccess is how the server is reached.
	RegistryAccess
	// Auth is who pulls from the server. A mirror gets none of it: list its host among the registries, with an auth.
	Auth *RegistryAuth `json:"auth,omitempty"`
}

// RegistryMirror is a host that has images of a registry.
type RegistryMirror struct {
	// URL is where it is, https://HOST[:PORT][/PATH] or http://, without user and password.
	URL string `json:"url"`
	// RegistryAccess is how the mirror is reached.
	RegistryAccess
}

// RegistryAccess is how one host is reached and what it is for.
type RegistryAccess struct {
	// Capabilities are what the host is asked for: pull (by digest), resolve (a tag to a digest), push, referrers (what
	// refers to an image, such as signatures). Left out, all. A mirror that is not trusted to resolve tags has pull alone.
	Capabilities []string `json:"capabilities,omitempty"`
	// CA is certificates, PEM, that are trusted for this host beside those of the system.
	CA string `json:"ca,omitempty"`
	// Client is the certificate by which the host knows this node.
	Client *ClientCertificate `json:"client,omitempty"`
	// SkipVerify takes any certificate of the host. For tests: whoever is between can then change images.
	SkipVerify bool `json:"skipVerify,omitempty"`
	// OverridePath says that the URL's path is that of the API already: /v2 is not put behind it.
	OverridePath bool `json:"overridePath,omitempty"`
	// Headers are sent with every request to the host.
	Headers map[string]Secret `json:"headers,omitempty"`
	// DialTimeout is how long a connection may take to come about, as a Go duration such as 5s.
	DialTimeout string `json:"dialTimeout,omitempty"`
}

// ClientCertificate is a certificate and its key.
type ClientCertificate struct {
	// Cert is the certificate, PEM, with those between it and its authority behind it.
	Cert string `json:"cert"`
	// Key is the private key of the certificate, PEM, not encrypted.
	Key Secret `json:"key"`
}

// RegistryAuth is who pulls: username and password, or identityToken.
type RegistryAuth struct {
	// Username is the name to sign in with. It goes with password.
	Username string `json:"username,omitempty"`
	// Password goes with username.
	Password Secret `json:"password,omitzero"`
	// IdentityToken is an OAuth2 refresh token of the registry.
	IdentityToken Secret `json:"identityToken,omitzero"`
}

// Proxy is how the daemon gets out: http and httpSecret, and https and httpsSecret, are two forms of one field.
type Proxy struct {
	// HTTP is the URL of the proxy of plain HTTP requests, http://HOST:PORT, without user and password.
	HTTP string `json:"http,omitempty"`
	// HTTPSecret is the same with user and password, http://USER:PASSWORD@HOST:PORT, in percent encoding.
	HTTPSecret Secret `json:"httpSecret,omitzero"`
	// HTTPS is the URL of the proxy of HTTPS requests, which are most. It is mostly http:// as well.
	HTTPS string `json:"https,omitempty"`
	// HTTPSSecret is the same with user and password.
	HTTPSSecret Secret `json:"httpsSecret,omitzero"`
	// NoProxy is what is reached without: HOST (and all below it), .HOST (only what is below it), an address, each with
	// :PORT if need be; a network such as 10.0.0.0/8; or *. The node itself always is.
	NoProxy []string `json:"noProxy,omitempty"`
}
