package v1alpha1

import "encoding/json"

// KubernetesNode makes the machine a node of a Kubernetes cluster: it creates a cluster or joins one, once. On a
// machine that is that node already, files and static pods stay managed, other settings are not changed, with a warning if the
// document has changed since; another name, role or cluster is refused.
type KubernetesNode struct {
	Header
	// Spec is the desired state.
	Spec KubernetesNodeSpec `json:"spec"`
}

// KubernetesNodeSpec is the desired state of a KubernetesNode document. Its fields are stable over the versions of Kubernetes
// and of the configuration formats of providers. Source: the reference of the Kubernetes components.
type KubernetesNodeSpec struct {
	// Provider names the plugin, for example kubeadm. By default the host chooses.
	Provider string `json:"provider,omitempty"`
	// Role is controlPlaneInit to create a cluster, controlPlaneJoin to join one as a further control plane, or worker.
	Role string `json:"role"`
	// KubernetesVersion is the version of the control plane, such as v1.37.1. The installed programs must suit it: Kubernetes
	// version skew policy.
	KubernetesVersion string `json:"kubernetesVersion"`
	// Cluster identifies the cluster and, for controlPlaneInit, configures it.
	Cluster KubernetesCluster `json:"cluster,omitzero"`
	// Node is the registration of the machine with the cluster.
	Node KubernetesNodeRegistration `json:"node,omitzero"`
	// Kubelet configures the kubelet. With controlPlaneInit the settings are also the defaults of all later nodes.
	Kubelet *Kubelet `json:"kubelet,omitempty"`
	// KubeProxy configures kube-proxy in the cluster; controlPlaneInit only.
	KubeProxy *KubeProxy `json:"kubeProxy,omitempty" roles:"controlPlaneInit"`
	// Discovery is how a node finds and trusts the cluster that it joins; required for controlPlaneJoin and worker. For
	// controlPlaneInit, token is the bootstrap token to create, valid for 24 hours; without it none is valid.
	Discovery *Discovery `json:"discovery,omitempty"`
	// CertificateKey encrypts the certificate authorities that control planes share through the cluster: 64 hexadecimal
	// digits. controlPlaneInit uploads them, controlPlaneJoin downloads them.
	CertificateKey *Secret `json:"certificateKey,omitempty" roles:"controlPlaneInit,controlPlaneJoin"`
	// Certificates are the certificate authorities of the cluster and its key for service accounts. By default controlPlaneInit
	// creates them. Not for workers.
	Certificates *ClusterCertificates `json:"certificates,omitempty" roles:"controlPlaneInit,controlPlaneJoin"`
	// Etcd configures the cluster's etcd; controlPlaneInit, but external also for controlPlaneJoin.
	Etcd *Etcd `json:"etcd,omitempty"`
	// APIServer configures kube-apiserver; controlPlaneInit only, as the next two, but image also for controlPlaneJoin.
	APIServer *ControlPlaneComponent `json:"apiServer,omitempty"`
	// ControllerManager configures kube-controller-manager.
	ControllerManager *ControlPlaneComponent `json:"controllerManager,omitempty"`
	// Scheduler configures kube-scheduler.
	Scheduler *ControlPlaneComponent `json:"scheduler,omitempty"`
	// Files are written to the machine, in order. They stay managed when the machine is a node.
	Files []NodeFile `json:"files,omitempty"`
	// StaticPods are pods that the kubelet runs without the cluster; control planes only.
	StaticPods []StaticPod `json:"staticPods,omitempty" roles:"controlPlaneInit,controlPlaneJoin"`
	// Patches change what the provider generates on this machine.
	Patches []ComponentPatch `json:"patches,omitempty"`
	// SkipPhases are phases of the provider that are left out, such as addon/kube-proxy.
	SkipPhases []string `json:"skipPhases,omitempty"`
	// IgnorePreflightErrors names checks of the provider whose failure is a warning, such as NumCPU.
	IgnorePreflightErrors []string `json:"ignorePreflightErrors,omitempty"`
	// IgnoreAllPreflightErrors turns the failure of every check into a warning. It excludes ignorePreflightErrors.
	IgnoreAllPreflightErrors bool `json:"ignoreAllPreflightErrors,omitempty"`
	// Timeouts bound the steps of the provider. metadata.timeout bounds them all.
	Timeouts *NodeTimeouts `json:"timeouts,omitempty"`
	// Profiles are sets of settings that the rules of a benchmark ask for: disa-k8s-v2r6, cis-1.11. A setting of the document
	// that contradicts one is an error.
	Profiles []string `json:"profiles,omitempty"`
	// ProviderConfig is specific to the provider.
	ProviderConfig json.RawMessage `json:"providerConfig,omitempty"`
}

// KubernetesCluster identifies a cluster. Every field but name, endpoint and certificatesDir is for controlPlaneInit only.
type KubernetesCluster struct {
	// Name is the name of the cluster. Default kubernetes.
	Name string `json:"name,omitempty"`
	// Endpoint is the HOST:PORT of the API server that all nodes use, such as a load balancer. Required for more than one
	// control plane.
	Endpoint string `json:"endpoint,omitempty"`
	// DNSDomain is the DNS domain of services. Default cluster.local.
	DNSDomain string `json:"dnsDomain,omitempty" roles:"controlPlaneInit"`
	// PodSubnets are the CIDR ranges of pods, at most one of IPv4 and one of IPv6.
	PodSubnets []string `json:"podSubnets,omitempty" roles:"controlPlaneInit"`
	// ServiceSubnets are the CIDR ranges of services, at most one of IPv4 and one of IPv6. Default 10.96.0.0/12.
	ServiceSubnets []string `json:"serviceSubnets,omitempty" roles:"controlPlaneInit"`
	// ImageRepository is where the images of the control plane are pulled from, HOST/PATH.
	ImageRepository string `json:"imageRepository,omitempty" roles:"controlPlaneInit"`
	// DNSImage replaces the image of the DNS server of services, which is pulled with the others. Its repository is imageRepository by
	// default, without the directory coredns that the registry of Kubernetes has.
	DNSImage *ComponentImage `json:"dnsImage,omitempty" roles:"controlPlaneInit"`
	// CertificateSANs are further names and addresses in the certificate of the API server.
	CertificateSANs []string `json:"certificateSANs,omitempty" roles:"controlPlaneInit"`
	// CertificatesDir is the directory of the certificates, an absolute path of Linux, the same on every node of the cluster: a
	// worker has ca.crt there, below C: on Windows. Default /etc/kubernetes/pki.
	CertificatesDir string `json:"certificatesDir,omitempty"`
	// KeyAlgorithm is the type of new keys: RSA-2048, RSA-3072, RSA-4096, ECDSA-P256 or ECDSA-P384.
	KeyAlgorithm string `json:"keyAlgorithm,omitempty" roles:"controlPlaneInit"`
	// CertificateValidity is the lifetime of new certificates, as a Go duration such as 8760h.
	CertificateValidity string `json:"certificateValidity,omitempty" roles:"controlPlaneInit"`
	// CACertificateValidity is the lifetime of new certificate authorities, as a Go duration such as 87600h.
	CACertificateValidity string `json:"caCertificateValidity,omitempty" roles:"controlPlaneInit"`
}

// KubernetesNodeRegistration is what the machine reports of itself to the cluster. A value that only the machine has is taken
// from it by the field that ends in From; a field and its From exclude each other.
type KubernetesNodeRegistration struct {
	// Name is the name of the node, a DNS subdomain. Default the host name, in lower case.
	Name string `json:"name,omitempty"`
	// NameFrom takes the name from the machine.
	NameFrom *MachineValue `json:"nameFrom,omitempty"`
	// IP is the address of the node. Two addresses, separated by a comma, are one of each family; 0.0.0.0 and :: are the address of
	// the default route of their family. By default the address of the default route.
	IP string `json:"ip,omitempty"`
	// IPFrom takes the address from the machine, or both.
	IPFrom *MachineValue `json:"ipFrom,omitempty"`
	// AdvertiseAddress is the address of the API server and the etcd of a control plane, in the family of the first range of
	// services; 0.0.0.0 and :: are the address of the default route of their family. By default the first of ip, or the address of the
	// default route.
	AdvertiseAddress string `json:"advertiseAddress,omitempty" roles:"controlPlaneInit,controlPlaneJoin"`
	// AdvertiseAddressFrom takes the address from the machine.
	AdvertiseAddressFrom *MachineValue `json:"advertiseAddressFrom,omitempty" roles:"controlPlaneInit,controlPlaneJoin"`
	// AdvertisePort is the port of the API server of a control plane, from 1 to 65535. Default 6443.
	AdvertisePort *int `json:"advertisePort,omitempty" roles:"controlPlaneInit,controlPlaneJoin"`
	// Swap is off to turn swap off, now and at every boot, or keep. With off the lines of /etc/fstab become comments, and no unit of
	// systemd, swap file or zram turns it on; removing the field does not undo this. In an object of a cluster write "off" with its
	// quotes. By default swap is kept, with a warning where the cluster decides whether the kubelet starts with it.
	Swap string `json:"swap,omitempty"`
	// ProviderID identifies the machine at its infrastructure provider, such as aws:///eu-west-1a/i-0123456789.
	ProviderID string `json:"providerID,omitempty"`
	// ProviderIDFrom takes the identifier from the machine.
	ProviderIDFrom *MachineValue `json:"providerIDFrom,omitempty"`
	// Labels of the node at its registration. The prefixes kubernetes.io and k8s.io are limited to those that a node may set
	// itself.
	Labels map[string]string `json:"labels,omitempty"`
	// Taints of the node at its registration. By default control planes have node-role.kubernetes.io/control-plane:NoSchedule;
	// an empty list means no taint.
	Taints []Taint `json:"taints,omitzero"`
	// KubeletArgs are command line arguments of the kubelet, in order. Those that another field of node sets are refused.
	KubeletArgs []Argument `json:"kubeletArgs,omitempty"`
	// CRISocket is the socket of the container runtime, such as unix:///run/containerd/containerd.sock. By default that of
	// the one runtime that is installed.
	CRISocket string `json:"criSocket,omitempty"`
	// ImagePullPolicy is Always, IfNotPresent or Never, for the images of a control plane. Default IfNotPresent.
	ImagePullPolicy string `json:"imagePullPolicy,omitempty" roles:"controlPlaneInit,controlPlaneJoin"`
	// CloudProvider is external if a cloud controller manager initializes the node.
	CloudProvider string `json:"cloudProvider,omitempty"`
	// Register makes the kubelet create its Node. Default true.
	Register *bool `json:"register,omitempty"`
}

// MachineValue is a value of this machine: exactly one of hostname, interface and file. An address comes from an interface or
// a file, anything else from the host name or a file. A source that is not there yet ends the run as a Precondition.
type MachineValue struct {
	// Hostname is short or fqdn: the host name up to its first dot, or with its domain, which is that of the host name or of
	// its line in /etc/hosts.
	Hostname string `json:"hostname,omitempty"`
	// Interface is the name of a network interface, whose first global address of the family is taken.
	Interface string `json:"interface,omitempty"`
	// Family is ipv4 or ipv6, for interface. For ipFrom it is also ipv4,ipv6 or ipv6,ipv4: both, in this order. Default ipv4.
	Family string `json:"family,omitempty"`
	// File is the absolute path of a text file of at most 1 MiB.
	File string `json:"file,omitempty"`
	// Key selects the value of one line KEY=VALUE of the file, without quotes around it. By default the value is the whole
	// file without white space around it.
	Key string `json:"key,omitempty"`
	// JSONKeys selects values of the file, which is an object in JSON: the names of its keys, of letters, digits, - and _,
	// joined with dots, such as v1.instance_id. Each value is a text or a number. Several are joined with slashes. Excludes key.
	JSONKeys []string `json:"jsonKeys,omitempty"`
	// Prefix is put before the value, such as aws:/// before an instance.
	Prefix string `json:"prefix,omitempty"`
}

// Taint keeps pods without a matching toleration from a node.
type Taint struct {
	// Key is a label key.
	Key string `json:"key"`
	// Value is a label value.
	Value string `json:"value,omitempty"`
	// Effect is NoSchedule, PreferNoSchedule or NoExecute.
	Effect string `json:"effect"`
}

// Argument is a command line argument --NAME=VALUE. A name may repeat where the program and the provider allow it.
type Argument struct {
	// Name has no leading dashes.
	Name string `json:"name"`
	// Value may be empty.
	Value string `json:"value"`
}

// Kubelet configures the kubelet. Source: kubelet.config.k8s.io/v1beta1 KubeletConfiguration.
type Kubelet struct {
	// CgroupDriver is systemd or cgroupfs, that of the container runtime. Default systemd.
	CgroupDriver string `json:"cgroupDriver,omitempty"`
	// MaxPods bounds the pods of the node. Default 110.
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
type KubeProxy struct {
	// Skip leaves kube-proxy out, for a network that replaces it. It excludes the other fields.
	Skip bool `json:"skip,omitempty"`
	// Mode is iptables, ipvs or nftables. By default kube-proxy decides.
	Mode string `json:"mode,omitempty"`
	// Config has further fields of KubeProxyConfiguration by their own names. A field that this struct has as well is an
	// error, as is one that kube-proxy does not know, or with a value of another type.
	Config json.RawMessage `json:"config,omitempty"`
}

// Discovery is either a token with the hashes of the cluster's certificate authority, or a kubeconfig.
type Discovery struct {
	// Token is a bootstrap token: 6 and 16 lower-case letters and digits, separated by a dot.
	Token *Secret `json:"token,omitempty"`
	// CACertHashes are sha256:HEX of the public keys of certificate authorities that the cluster may have, as printed by
	// kubeadm. Required with a token to join.
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
type Etcd struct {
	// Local is an etcd on each control plane.
	Local *LocalEtcd `json:"local,omitempty" roles:"controlPlaneInit"`
	// External is an etcd that exists. A further control plane needs its certificates too.
	External *ExternalEtcd `json:"external,omitempty" roles:"controlPlaneInit,controlPlaneJoin"`
}

// LocalEtcd is an etcd on each control plane.
type LocalEtcd struct {
	// DataDir is the directory of the data, an absolute path. Default /var/lib/etcd.
	DataDir string `json:"dataDir,omitempty"`
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
type ExternalEtcd struct {
	// Endpoints are the URLs of its members.
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
	Name string `json:"name"`
	// HostPath is the absolute path on the machine.
	HostPath string `json:"hostPath"`
	// MountPath is the absolute path in the container. Default hostPath.
	MountPath string `json:"mountPath,omitempty"`
	// ReadOnly keeps the component from writing. Default true.
	ReadOnly *bool `json:"readOnly,omitempty"`
	// PathType is what hostPath must be: File, FileOrCreate, Directory, DirectoryOrCreate, Socket or empty for no check.
	PathType string `json:"pathType,omitempty"`
}

// NodeFile is a file that is written to the machine. It has exactly one of content and secretContent.
type NodeFile struct {
	// Path is an absolute path other than those that the provider, kubeadm and the kubelet write.
	Path string `json:"path"`
	// Content is the content.
	Content *string `json:"content,omitempty"`
	// SecretContent is the content if it is confidential. Its default mode is 0600. A mode with which every user of the machine can
	// read it is a warning; one with which they can change it is refused.
	SecretContent *Secret `json:"secretContent,omitempty"`
	// Encoding is base64 if the content is; by default it is text.
	Encoding string `json:"encoding,omitempty"`
	// Owner is USER:GROUP, each a name of this machine or a number. Default root:root.
	Owner string `json:"owner,omitempty"`
	// Mode is the file mode, as an octal string. Default 0644.
	Mode string `json:"mode,omitempty"`
	// When is beforeKubernetes, so that components find the file when they start, or afterKubernetes. Default
	// beforeKubernetes.
	When string `json:"when,omitempty"`
}

// StaticPod is a pod that the kubelet of this machine runs. Source: Kubernetes documentation, "Create static Pods".
type StaticPod struct {
	// Name is the name of the manifest, a DNS label other than that of a component.
	Name string `json:"name"`
	// Manifest is the Pod in YAML or JSON.
	Manifest string `json:"manifest"`
}

// ComponentPatch changes an object that the provider generates on this machine. A worker has kubeletconfiguration only;
// corednsdeployment and kubeproxydaemonset are for controlPlaneInit.
type ComponentPatch struct {
	// Target is kube-apiserver, kube-controller-manager, kube-scheduler, etcd, kubeletconfiguration, corednsdeployment or
	// kubeproxydaemonset.
	Target string `json:"target"`
	// Type is strategic, merge or json (RFC 6902). Default strategic.
	Type string `json:"type,omitempty"`
	// Patch is the patch, in YAML or JSON.
	Patch string `json:"patch"`
}

// NodeTimeouts bound the steps of a provider, as Go durations such as 4m. An absent one is the provider's default.
type NodeTimeouts struct {
	// ControlPlane bounds the wait for the components of the control plane.
	ControlPlane string `json:"controlPlane,omitempty"`
	// Kubelet bounds the wait for the kubelet.
	Kubelet string `json:"kubelet,omitempty"`
	// KubernetesAPI bounds a request to the API server, with its repetitions. Default 4m, or a third of metadata.timeout if that is less.
	KubernetesAPI string `json:"kubernetesAPI,omitempty"`
	// EtcdAPI bounds a request to etcd.
	EtcdAPI string `json:"etcdAPI,omitempty"`
	// TLSBootstrap bounds the wait for the kubelet's client certificate.
	TLSBootstrap string `json:"tlsBootstrap,omitempty"`
	// Discovery bounds the validation of the cluster's address and certificate authority.
	Discovery string `json:"discovery,omitempty"`
}
