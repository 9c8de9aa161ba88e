package v1alpha1

import "encoding/json"

// Kubelet configures the kubelet. Source: kubelet.config.k8s.io/v1beta1 KubeletConfiguration.
type Kubelet struct {
	// CgroupDriver is systemd or cgroupfs, and must match the container runtime. Default systemd.
	CgroupDriver CgroupDriver `json:"cgroupDriver,omitempty"`
	// MaxPods bounds the pods of the node. Default 110.
	//
	// +kubebuilder:validation:Minimum=1
	MaxPods *int `json:"maxPods,omitempty"`
	// SystemReserved maps a resource to the quantity that is kept for the system, such as memory: 500Mi.
	SystemReserved map[string]string `json:"systemReserved,omitempty"`
	// KubeReserved maps a resource to the quantity that is kept for the components of Kubernetes.
	KubeReserved map[string]string `json:"kubeReserved,omitempty"`
	// EvictionHard maps a signal to the threshold at which pods are evicted at once, such as memory.available: 5%.
	EvictionHard map[string]string `json:"evictionHard,omitempty"`
	// ProtectKernelDefaults makes the kubelet end with an error if sysctls differ from what it requires.
	ProtectKernelDefaults *bool `json:"protectKernelDefaults,omitempty"`
	// ServerTLSBootstrap makes the kubelet request its serving certificate from the cluster.
	ServerTLSBootstrap *bool `json:"serverTLSBootstrap,omitempty"`
	// Config has further fields of KubeletConfiguration by their own names. A field that this struct has as well is an error, as is one
	// that the kubelet does not know, or with a value with which it does not start.
	Config json.RawMessage `json:"config,omitempty"`
}

// KubeProxy configures kube-proxy. Source: kubeproxy.config.k8s.io/v1alpha1 KubeProxyConfiguration.
//
// +kubebuilder:validation:XValidation:rule="!((has(self.skip) && self.skip) && ((has(self.mode) && size(self.mode) > 0) || has(self.config)))",message="skip excludes mode and config",fieldPath=".skip"
type KubeProxy struct {
	// Skip leaves kube-proxy out, for a network that replaces it. It excludes the other fields.
	Skip bool `json:"skip,omitempty"`
	// Mode is iptables, ipvs or nftables. By default kube-proxy decides.
	//
	// +kubebuilder:validation:Enum=iptables;ipvs;nftables
	Mode string `json:"mode,omitempty"`
	// Config has further fields of KubeProxyConfiguration by their own names. A field that this struct has as well is an
	// error, as is one that kube-proxy does not know, or with a value of another type.
	Config json.RawMessage `json:"config,omitempty"`
}

// Discovery is either a token with the hashes of the cluster's certificate authority, or a kubeconfig.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.kubeconfig) && (has(self.token) || (has(self.caCertHashes) && size(self.caCertHashes) > 0) || (has(self.endpoint) && size(self.endpoint) > 0)))",message="kubeconfig excludes token, caCertHashes and endpoint",fieldPath=".kubeconfig"
type Discovery struct {
	// Token is a bootstrap token: 6 and 16 lower-case letters and digits, separated by a dot.
	Token *Secret `json:"token,omitempty"`
	// CACertHashes are sha256:HEX of the public keys of certificate authorities that the cluster may have, as printed by
	// kubeadm. Required with a token to join.
	//
	// +kubebuilder:validation:items:Pattern=`^sha256:[0-9a-fA-F]{64}$`
	CACertHashes []string `json:"caCertHashes,omitempty" roles:"controlPlaneJoin,worker"`
	// Endpoint is the HOST:PORT of the API server to ask first. Default cluster.endpoint.
	Endpoint string `json:"endpoint,omitempty" roles:"controlPlaneJoin,worker"`
	// Kubeconfig is a kubeconfig file with the cluster's address, certificate authority and credentials to join. It excludes
	// the other fields.
	Kubeconfig *Secret `json:"kubeconfig,omitempty" roles:"controlPlaneJoin,worker"`
}

// ClusterCertificates are the certificate authorities of a cluster and its key for service accounts.
type ClusterCertificates struct {
	// CA signs the certificates of the API server and of its clients.
	CA *KeyPair `json:"ca,omitempty"`
	// FrontProxyCA signs the certificate of the front proxy.
	FrontProxyCA *KeyPair `json:"frontProxyCA,omitempty"`
	// EtcdCA signs the certificates of etcd.
	EtcdCA *KeyPair `json:"etcdCA,omitempty"`
	// ServiceAccount signs the tokens of service accounts. Its certificate is a public key.
	ServiceAccount *KeyPair `json:"serviceAccount,omitempty"`
}

// KeyPair is a certificate and its private key.
type KeyPair struct {
	// Certificate is in PEM format.
	Certificate string `json:"certificate"`
	// Key is in PEM format.
	Key Secret `json:"key"`
}

// Etcd is the database of the cluster: local or external. By default local.
//
// +kubebuilder:validation:XValidation:rule="[has(self.local), has(self.external)].exists_one(x, x)",message="must have exactly one of local and external"
type Etcd struct {
	// Local is an etcd on each control plane.
	Local *LocalEtcd `json:"local,omitempty" roles:"controlPlaneInit"`
	// External is an etcd that exists. A further control plane needs its certificates too.
	External *ExternalEtcd `json:"external,omitempty" roles:"controlPlaneInit,controlPlaneJoin"`
}

// LocalEtcd is an etcd on each control plane.
type LocalEtcd struct {
	// DataDir is the directory of the data, an absolute path. Default /var/lib/etcd.
	DataDir AbsolutePath `json:"dataDir,omitempty"`
	// Args are command line arguments, in order.
	Args []Argument `json:"args,omitempty"`
	// Env are environment variables.
	Env []EnvironmentVariable `json:"env,omitempty"`
	// ServerCertificateSANs are further names and addresses in the certificate with which etcd serves clients.
	ServerCertificateSANs []string `json:"serverCertificateSANs,omitempty"`
	// PeerCertificateSANs are further names and addresses in the certificate with which etcd serves its other members.
	PeerCertificateSANs []string `json:"peerCertificateSANs,omitempty"`
	// Image replaces the image.
	Image *ComponentImage `json:"image,omitempty"`
}

// ExternalEtcd is an etcd that exists.
//
// +kubebuilder:validation:XValidation:rule="(has(self.cert) && size(self.cert) > 0) == has(self.key)",message="cert and key require each other",fieldPath=".key"
type ExternalEtcd struct {
	// Endpoints are the URLs of its members.
	//
	// +kubebuilder:validation:MinItems=1
	Endpoints []string `json:"endpoints"`
	// CA is the certificate authority of its servers, in PEM format.
	CA string `json:"ca,omitempty"`
	// Cert is the client certificate of the API server, in PEM format.
	Cert string `json:"cert,omitempty"`
	// Key is the key of cert, in PEM format.
	Key *Secret `json:"key,omitempty"`
}

// ComponentImage is the image of a component. An absent field keeps the provider's default.
type ComponentImage struct {
	// Repository is HOST/PATH, without the name of the image.
	Repository string `json:"repository,omitempty"`
	// Tag is the tag of the image.
	Tag string `json:"tag,omitempty"`
}

// ControlPlaneComponent configures a component of the control plane.
type ControlPlaneComponent struct {
	// Args are command line arguments, in order.
	Args []Argument `json:"args,omitempty" roles:"controlPlaneInit"`
	// Env are environment variables.
	Env []EnvironmentVariable `json:"env,omitempty" roles:"controlPlaneInit"`
	// Volumes are files and directories of the machine that the component sees.
	Volumes []HostVolume `json:"volumes,omitempty" roles:"controlPlaneInit"`
	// Image is a full reference that replaces the image.
	Image string `json:"image,omitempty" roles:"controlPlaneInit,controlPlaneJoin"`
}

// Argument is a command line argument --NAME=VALUE. A name may repeat where the program and the provider allow it.
type Argument struct {
	// Name has no leading dashes.
	//
	// +kubebuilder:validation:Pattern=`^[^-].*$`
	Name string `json:"name"`
	// Value may be empty.
	Value string `json:"value"`
}

// EnvironmentVariable is a variable of a component. It is not secret: anyone who can read pods can read it.
type EnvironmentVariable struct {
	// Name is the name of the variable.
	Name string `json:"name"`
	// Value may be empty.
	Value string `json:"value"`
}

// HostVolume is a file or directory of the machine that a component sees.
type HostVolume struct {
	// Name is a DNS label, unique in the component.
	Name DNSLabel `json:"name"`
	// HostPath is the absolute path on the machine.
	HostPath AbsolutePath `json:"hostPath"`
	// MountPath is the absolute path in the container. Default hostPath.
	MountPath AbsolutePath `json:"mountPath,omitempty"`
	// ReadOnly keeps the component from writing. Default true.
	ReadOnly *bool `json:"readOnly,omitempty"`
	// PathType is what hostPath must be: File, FileOrCreate, Directory, DirectoryOrCreate, Socket or empty for no check.
	//
	// +kubebuilder:validation:Enum=File;FileOrCreate;Directory;DirectoryOrCreate;Socket
	PathType string `json:"pathType,omitempty"`
}
