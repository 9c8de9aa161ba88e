package v1alpha1

import "encoding/json"

// ContainerRuntime configures the container runtime of a node, by which the kubelet starts containers and pulls images.
type ContainerRuntime struct {
	Header
	// Spec is the desired state.
	Spec ContainerRuntimeSpec `json:"spec"`
}

// ContainerRuntimeSpec is the desired state of a ContainerRuntime document. An absent field is not managed: the value of the
// runtime or of the administrator stays. Source: the Container Runtime Interface, the OCI
// specifications (runtime, image, distribution), the Container Device, Network and Node Resource Interfaces.
//
// +kubebuilder:validation:XValidation:rule="!((has(self.rootDir) && size(self.rootDir) > 0) && (has(self.stateDir) && size(self.stateDir) > 0)) || self.rootDir != self.stateDir",message="stateDir must differ from rootDir",fieldPath=".stateDir"
type ContainerRuntimeSpec struct {
	// Provider names the plugin, for example containerd. By default the host chooses.
	Provider DNSLabel `json:"provider,omitempty"`
	// CgroupDriver manages the cgroups of containers: systemd or cgroupfs. It applies to every OCI runtime, including those
	// of the existing configuration, unless runtimes overrides it. It must match the kubelet's.
	CgroupDriver CgroupDriver `json:"cgroupDriver,omitempty"`
	// SandboxImage is the image of the container that holds a pod's namespaces, as a full reference: HOST/NAME:TAG or
	// HOST/NAME@DIGEST. On a kubeadm node it must be the image that kubeadm requires.
	SandboxImage string `json:"sandboxImage,omitempty"`
	// Snapshotter is the runtime's name of the driver that assembles the layers of an image, such as overlayfs.
	Snapshotter string `json:"snapshotter,omitempty"`
	// RootDir is the directory of images and containers, an absolute path.
	RootDir AbsolutePath `json:"rootDir,omitempty"`
	// StateDir is the directory of state that ends with a boot, an absolute path other than rootDir.
	StateDir AbsolutePath `json:"stateDir,omitempty"`
	// MaxConcurrentDownloads bounds the layers of an image that are downloaded at once, at least 1.
	//
	// +kubebuilder:validation:Minimum=1
	MaxConcurrentDownloads *int `json:"maxConcurrentDownloads,omitempty"`
	// LogLevel is the lowest level that is logged: trace, debug, info, warn, error, fatal or panic.
	//
	// +kubebuilder:validation:Enum=trace;debug;info;warn;error;fatal;panic
	LogLevel string `json:"logLevel,omitempty"`
	// MetricsAddress is the HOST:PORT of the metrics endpoint, which has neither TLS nor authentication.
	MetricsAddress string `json:"metricsAddress,omitempty"`
	// OOMScore adjusts the preference of the kernel to kill the daemon when out of memory, from -1000 (never) to 1000 (first).
	// Source: proc_pid_oom_score_adj(5).
	//
	// +kubebuilder:validation:Minimum=-1000
	// +kubebuilder:validation:Maximum=1000
	OOMScore *int `json:"oomScore,omitempty"`
	// Runtimes maps the name of a runtime, the handler of a RuntimeClass, to its settings. A name is a DNS label. Unlisted
	// runtimes are not managed.
	Runtimes map[string]Runtime `json:"runtimes,omitempty"`
	// DefaultRuntime is the runtime of pods without a RuntimeClass: one of runtimes, or the default of the container runtime.
	// An empty string restores that default.
	DefaultRuntime *string `json:"defaultRuntime,omitempty"`
	// CDI configures the Container Device Interface, which gives containers access to devices.
	CDI *CDI `json:"cdi,omitempty"`
	// NRI configures the Node Resource Interface, by which plugins modify containers.
	NRI *NRI `json:"nri,omitempty"`
	// Registries maps the host of an image reference, HOST or HOST:PORT, to the settings for pulls; _default applies to every
	// unlisted host. The host of short references is Docker Hub.
	//
	// +kubebuilder:validation:MaxProperties=1000
	Registries map[string]Registry `json:"registries,omitempty"`
	// RegistryDirs are further directories with registry settings, absolute paths, in order. They apply to hosts that are not
	// in registries. Directories in the existing configuration stay.
	RegistryDirs []AbsolutePath `json:"registryDirs,omitempty"`
	// RegistryHeaders are sent with every request to any registry.
	RegistryHeaders map[string]Secret `json:"registryHeaders,omitempty"`
	// Proxy is the proxy of the daemon for registries.
	Proxy *Proxy `json:"proxy,omitempty"`
	// TrustedCAs are PEM certificates that every pull trusts in addition to the system's.
	TrustedCAs string `json:"trustedCAs,omitempty"`
	// CNI holds the directories of network plugins.
	CNI *CNI `json:"cni,omitempty"`
	// Imports are further configuration files that the runtime reads: absolute paths, or patterns such as
	// /etc/example/*.toml.
	Imports []AbsolutePath `json:"imports,omitempty"`
	// ProviderConfig holds what only one provider supports; the README of the plugin lists its fields.
	ProviderConfig json.RawMessage `json:"providerConfig,omitempty"`
}

// Runtime is the runtime of one handler.
type Runtime struct {
	// Type is the provider's name for the type of runtime, such as io.containerd.runc.v2. By default it follows from a
	// well-known name: runc, crun, kata, runsc, runhcs and names that start with kata- or runhcs-.
	Type string `json:"type,omitempty"`
	// Binary is the absolute path of the program: of an OCI runtime such as crun, or of the shim of a runtime such as Kata
	// Containers. By default the daemon searches its PATH for the name.
	Binary AbsolutePath `json:"binary,omitempty"`
	// CgroupDriver manages the cgroups: systemd or cgroupfs, by default cgroupDriver of the spec. Only OCI runtimes have one.
	CgroupDriver CgroupDriver `json:"cgroupDriver,omitempty"`
	// Options are specific to the runtime, with its names and types.
	Options map[string]json.RawMessage `json:"options,omitempty"`
	// BaseSpec is the base specification of this runtime's containers.
	BaseSpec *BaseSpec `json:"baseSpec,omitempty"`
}

// BaseSpec is the part of an OCI runtime specification that every container starts from.
type BaseSpec struct {
	// Rlimits maps a resource limit, such as RLIMIT_NOFILE, to its value. Unlisted limits are the daemon's.
	Rlimits map[string]Rlimit `json:"rlimits,omitempty"`
	// Patch is a JSON merge patch (RFC 7396) of the rest of the specification: a mapping is merged, null removes, any other
	// value replaces. Resource limits belong in rlimits.
	Patch json.RawMessage `json:"patch,omitempty"`
}

// Rlimit is a resource limit. Source: getrlimit(2).
type Rlimit struct {
	// Soft is the effective limit, in the unit of the resource. A process may raise it up to hard.
	Soft uint64 `json:"soft"`
	// Hard is the maximum of soft, in the unit of the resource. 18446744073709551615 means no limit.
	Hard uint64 `json:"hard"`
}

// CDI is the Container Device Interface.
type CDI struct {
	// Enabled turns it on or off.
	Enabled *bool `json:"enabled,omitempty"`
	// SpecDirs are the directories of device specifications, absolute paths. A later one takes precedence.
	SpecDirs []AbsolutePath `json:"specDirs,omitempty"`
}

// NRI is the Node Resource Interface.
type NRI struct {
	// Enabled turns it on or off.
	Enabled *bool `json:"enabled,omitempty"`
}

// CNI holds the directories of the Container Network Interface.
type CNI struct {
	// BinDirs are the directories of the plugins' programs, absolute paths. Some runtime versions support only one.
	BinDirs []AbsolutePath `json:"binDirs,omitempty"`
	// ConfDir is the directory of the network configurations, an absolute path.
	ConfDir AbsolutePath `json:"confDir,omitempty"`
}

// Registry configures the pulls from one registry: from the mirrors in order, then from the server.
type Registry struct {
	// Server is the URL of the registry itself, https://HOST[:PORT][/PATH] or http://. It is used if no mirror has the image.
	// By default it is https:// and the host of the image reference. The URL of a mirror means that only mirrors are used;
	// the server then has the access settings of that mirror.
	Server string `json:"server,omitempty"`
	// Mirrors are used before the server, in order.
	Mirrors []RegistryMirror `json:"mirrors,omitempty"`
	// RegistryAccess configures the access to the server.
	RegistryAccess
	// Auth holds the credentials for the server. They are never sent to a mirror: for a mirror, list its host in registries.
	Auth *RegistryAuth `json:"auth,omitempty"`
}

// RegistryMirror is a mirror of a registry.
type RegistryMirror struct {
	// URL is its URL, https://HOST[:PORT][/PATH] or http://, without user and password.
	URL string `json:"url"`
	// RegistryAccess configures the access to the mirror.
	RegistryAccess
}

// RegistryAccess configures the access to one host.
type RegistryAccess struct {
	// Capabilities are the uses of the host: pull (by digest), resolve (a tag to a digest), push, referrers (such as
	// signatures of an image); by default all. A mirror that is not trusted to resolve tags has pull only.
	//
	// +kubebuilder:validation:items:Enum=pull;resolve;push;referrers
	Capabilities []string `json:"capabilities,omitempty"`
	// CA holds PEM certificates that are trusted for this host in addition to the system's.
	CA string `json:"ca,omitempty"`
	// Client is the client certificate of this node.
	Client *ClientCertificate `json:"client,omitempty"`
	// SkipVerify accepts any certificate of the host. For tests only: an attacker on the network can then replace images.
	SkipVerify bool `json:"skipVerify,omitempty"`
	// OverridePath means that the URL has the full path of the API, and /v2 is not appended.
	OverridePath bool `json:"overridePath,omitempty"`
	// Headers are sent with every request to the host.
	Headers map[string]Secret `json:"headers,omitempty"`
	// DialTimeout bounds the time to connect, as a Go duration such as 5s.
	DialTimeout Duration `json:"dialTimeout,omitempty"`
}

// ClientCertificate is a certificate and its key.
type ClientCertificate struct {
	// Cert is the PEM certificate, followed by its intermediate certificates.
	Cert string `json:"cert"`
	// Key is the PEM private key, not encrypted.
	Key Secret `json:"key"`
}

// RegistryAuth holds credentials: username and password, or identityToken.
//
// +kubebuilder:validation:XValidation:rule="has(self.identityToken) != ((has(self.username) && size(self.username) > 0) || has(self.password))",message="must have username and password, or identityToken"
// +kubebuilder:validation:XValidation:rule="(has(self.username) && size(self.username) > 0) == has(self.password)",message="username and password require each other"
type RegistryAuth struct {
	// Username requires password.
	Username string `json:"username,omitempty"`
	// Password requires username.
	Password Secret `json:"password,omitzero"`
	// IdentityToken is an OAuth2 refresh token of the registry.
	IdentityToken Secret `json:"identityToken,omitzero"`
}

// Proxy is the proxy of the daemon. http and httpSecret are two forms of one field, as are https and httpsSecret.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.httpSecret) && ((has(self.http) && size(self.http) > 0)))",message="httpSecret excludes http",fieldPath=".httpSecret"
// +kubebuilder:validation:XValidation:rule="!(has(self.httpsSecret) && ((has(self.https) && size(self.https) > 0)))",message="httpsSecret excludes https",fieldPath=".httpsSecret"
type Proxy struct {
	// HTTP is the URL of the proxy for HTTP requests, http://HOST:PORT, without user and password.
	HTTP string `json:"http,omitempty"`
	// HTTPSecret is the same with user and password, http://USER:PASSWORD@HOST:PORT, in percent encoding.
	HTTPSecret Secret `json:"httpSecret,omitzero"`
	// HTTPS is the URL of the proxy for HTTPS requests, usually http:// too.
	HTTPS string `json:"https,omitempty"`
	// HTTPSSecret is the same with user and password.
	HTTPSSecret Secret `json:"httpsSecret,omitzero"`
	// NoProxy lists destinations without a proxy: HOST (with its subdomains), .HOST (only its subdomains) or an address, each
	// with an optional :PORT; a network such as 10.0.0.0/8; or *. The node itself never uses the proxy.
	NoProxy []string `json:"noProxy,omitempty"`
}
