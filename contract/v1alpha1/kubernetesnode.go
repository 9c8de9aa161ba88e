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
//
// +kubebuilder:validation:XValidation:rule="!((has(self.ignorePreflightErrors) && size(self.ignorePreflightErrors) > 0) && ((has(self.ignoreAllPreflightErrors) && self.ignoreAllPreflightErrors)))",message="ignorePreflightErrors excludes ignoreAllPreflightErrors",fieldPath=".ignorePreflightErrors"
// +kubebuilder:validation:XValidation:rule="!((has(self.role) && size(self.role) > 0) && has(self.discovery)) || self.role == 'controlPlaneInit' || !has(self.discovery.token) || has(self.discovery.caCertHashes) && size(self.discovery.caCertHashes) > 0",message="a token to join requires caCertHashes",fieldPath=".discovery"
type KubernetesNodeSpec struct {
	// Provider names the plugin, for example kubeadm. By default the host chooses.
	Provider DNSLabel `json:"provider,omitempty"`
	// Role is controlPlaneInit to create a cluster, controlPlaneJoin to join one as a further control plane, or worker.
	//
	// +kubebuilder:validation:Enum=controlPlaneInit;controlPlaneJoin;worker
	Role string `json:"role"`
	// KubernetesVersion is the version of the control plane, such as v1.37.1. The installed programs must suit it: Kubernetes
	// version skew policy.
	//
	// +kubebuilder:validation:Pattern=`^v(?:0|[1-9][0-9]{0,3})(?:\.(?:0|[1-9][0-9]{0,3})){2}(?:[+-][0-9A-Za-z.+-]{1,64})?$`
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
	//
	// +kubebuilder:validation:MaxItems=1000
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
	//
	// +kubebuilder:validation:items:Enum=disa-k8s-v2r6;cis-1.11
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
	//
	// +kubebuilder:validation:Pattern=`^/.+$`
	CertificatesDir string `json:"certificatesDir,omitempty"`
	// KeyAlgorithm is the type of new keys: RSA-2048, RSA-3072, RSA-4096, ECDSA-P256 or ECDSA-P384.
	//
	// +kubebuilder:validation:Enum=RSA-2048;RSA-3072;RSA-4096;ECDSA-P256;ECDSA-P384
	KeyAlgorithm string `json:"keyAlgorithm,omitempty" roles:"controlPlaneInit"`
	// CertificateValidity is the lifetime of new certificates, as a Go duration such as 8760h.
	CertificateValidity Duration `json:"certificateValidity,omitempty" roles:"controlPlaneInit"`
	// CACertificateValidity is the lifetime of new certificate authorities, as a Go duration such as 87600h.
	CACertificateValidity Duration `json:"caCertificateValidity,omitempty" roles:"controlPlaneInit"`
}

// KubernetesNodeRegistration is what the machine reports of itself to the cluster. A value that only the machine has is taken
// from it by the field that ends in From; a field and its From exclude each other.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.nameFrom) && ((has(self.name) && size(self.name) > 0)))",message="nameFrom excludes name",fieldPath=".nameFrom"
// +kubebuilder:validation:XValidation:rule="!(has(self.ipFrom) && ((has(self.ip) && size(self.ip) > 0)))",message="ipFrom excludes ip",fieldPath=".ipFrom"
// +kubebuilder:validation:XValidation:rule="!(has(self.advertiseAddressFrom) && ((has(self.advertiseAddress) && size(self.advertiseAddress) > 0)))",message="advertiseAddressFrom excludes advertiseAddress",fieldPath=".advertiseAddressFrom"
// +kubebuilder:validation:XValidation:rule="!(has(self.providerIDFrom) && ((has(self.providerID) && size(self.providerID) > 0)))",message="providerIDFrom excludes providerID",fieldPath=".providerIDFrom"
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
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	AdvertisePort *int `json:"advertisePort,omitempty" roles:"controlPlaneInit,controlPlaneJoin"`
	// Swap is off to turn swap off, now and at every boot, or keep. With off the lines of /etc/fstab become comments, and no unit of
	// systemd, swap file or zram turns it on; removing the field does not undo this. In an object of a cluster write "off" with its
	// quotes. By default swap is kept, with a warning where the cluster decides whether the kubelet starts with it.
	//
	// +kubebuilder:validation:Enum=off;keep
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
	//
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy string `json:"imagePullPolicy,omitempty" roles:"controlPlaneInit,controlPlaneJoin"`
	// CloudProvider is external if a cloud controller manager initializes the node.
	//
	// +kubebuilder:validation:Enum=external
	CloudProvider string `json:"cloudProvider,omitempty"`
	// Register makes the kubelet create its Node. Default true.
	Register *bool `json:"register,omitempty"`
}

// MachineValue is a value of this machine: exactly one of hostname, interface and file. An address comes from an interface or
// a file, anything else from the host name or a file. A source that is not there yet ends the run as a Precondition.
//
// +kubebuilder:validation:XValidation:rule="[(has(self.hostname) && size(self.hostname) > 0), (has(self.interface) && size(self.interface) > 0), (has(self.file) && size(self.file) > 0)].exists_one(x, x)",message="must have exactly one of hostname, interface and file"
// +kubebuilder:validation:XValidation:rule="!(has(self.family) && size(self.family) > 0) || (has(self.interface) && size(self.interface) > 0)",message="family is for interface only",fieldPath=".family"
// +kubebuilder:validation:XValidation:rule="!(has(self.key) && size(self.key) > 0) || (has(self.file) && size(self.file) > 0)",message="key is for file only",fieldPath=".key"
// +kubebuilder:validation:XValidation:rule="!(has(self.jsonKeys) && size(self.jsonKeys) > 0) || (has(self.file) && size(self.file) > 0)",message="jsonKeys is for file only",fieldPath=".jsonKeys"
// +kubebuilder:validation:XValidation:rule="!((has(self.jsonKeys) && size(self.jsonKeys) > 0) && ((has(self.key) && size(self.key) > 0)))",message="jsonKeys excludes key",fieldPath=".jsonKeys"
// +kubebuilder:validation:XValidation:rule="!((has(self.prefix) && size(self.prefix) > 0) && ((has(self.interface) && size(self.interface) > 0)))",message="prefix excludes interface",fieldPath=".prefix"
type MachineValue struct {
	// Hostname is short or fqdn: the host name up to its first dot, or with its domain, which is taken from the host name or from
	// its line in /etc/hosts.
	//
	// +kubebuilder:validation:Enum=short;fqdn
	Hostname string `json:"hostname,omitempty"`
	// Interface is the name of a network interface, whose first global address of the family is taken.
	Interface string `json:"interface,omitempty"`
	// Family is ipv4 or ipv6, for interface. For ipFrom it is also ipv4,ipv6 or ipv6,ipv4: both, in this order. Default ipv4.
	//
	// +kubebuilder:validation:Enum=ipv4;ipv6;"ipv4,ipv6";"ipv6,ipv4"
	Family string `json:"family,omitempty"`
	// File is the absolute path of a text file of at most 1 MiB.
	File AbsolutePath `json:"file,omitempty"`
	// Key selects the value of one line KEY=VALUE of the file, without quotes around it. By default the value is the whole
	// file without white space around it.
	Key string `json:"key,omitempty"`
	// JSONKeys selects values of the file, which is an object in JSON: the names of its keys, of letters, digits, - and _,
	// joined with dots, such as v1.instance_id. Each value is a text or a number. Several are joined with slashes. Excludes key.
	//
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$`
	// +kubebuilder:validation:MinItems=1
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
	//
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect string `json:"effect"`
}

// NodeFile is a file that is written to the machine. It has exactly one of content and secretContent.
//
// +kubebuilder:validation:XValidation:rule="[has(self.content), has(self.secretContent)].exists_one(x, x)",message="must have exactly one of content and secretContent"
// +kubebuilder:validation:XValidation:rule="!has(self.secretContent) || !(has(self.mode) && size(self.mode) > 0) || self.mode.endsWith('0') || self.mode.endsWith('4')",message="mode lets others change or run a secret",fieldPath=".mode"
type NodeFile struct {
	// Path is an absolute path other than those that the provider, kubeadm and the kubelet write.
	Path AbsolutePath `json:"path"`
	// Content is the content.
	Content *string `json:"content,omitempty"`
	// SecretContent is the content if it is confidential. Its default mode is 0600. A mode with which every user of the machine can
	// read it is a warning; one with which they can change it is refused.
	SecretContent *Secret `json:"secretContent,omitempty"`
	// Encoding is base64 if the content is; by default it is text.
	//
	// +kubebuilder:validation:Enum=base64
	Encoding string `json:"encoding,omitempty"`
	// Owner is USER:GROUP, each a name of this machine or a number. Default root:root.
	Owner FileOwner `json:"owner,omitempty"`
	// Mode is the file mode, as an octal string. Default 0644.
	//
	// +kubebuilder:validation:Pattern=`^0*[1-7][0-7]{0,2}$`
	Mode string `json:"mode,omitempty"`
	// When is beforeKubernetes, so that components find the file when they start, or afterKubernetes. Default
	// beforeKubernetes.
	//
	// +kubebuilder:validation:Enum=beforeKubernetes;afterKubernetes
	When string `json:"when,omitempty"`
}

// StaticPod is a pod that the kubelet of this machine runs. Source: Kubernetes documentation, "Create static Pods".
type StaticPod struct {
	// Name is the name of the manifest, a DNS label other than the name of a component.
	Name DNSLabel `json:"name"`
	// Manifest is the Pod in YAML or JSON.
	Manifest string `json:"manifest"`
}

// ComponentPatch changes an object that the provider generates on this machine. A worker has kubeletconfiguration only;
// corednsdeployment and kubeproxydaemonset are for controlPlaneInit.
type ComponentPatch struct {
	// Target is kube-apiserver, kube-controller-manager, kube-scheduler, etcd, kubeletconfiguration, corednsdeployment or
	// kubeproxydaemonset.
	//
	// +kubebuilder:validation:Enum=kube-apiserver;kube-controller-manager;kube-scheduler;etcd;kubeletconfiguration;corednsdeployment;kubeproxydaemonset
	Target string `json:"target"`
	// Type is strategic, merge or json (RFC 6902). Default strategic.
	//
	// +kubebuilder:validation:Enum=strategic;merge;json
	Type string `json:"type,omitempty"`
	// Patch is the patch, in YAML or JSON.
	Patch string `json:"patch"`
}

// NodeTimeouts bound the steps of a provider, as Go durations such as 4m. An absent one is the provider's default.
type NodeTimeouts struct {
	// ControlPlane bounds the wait for the components of the control plane.
	ControlPlane Duration `json:"controlPlane,omitempty"`
	// Kubelet bounds the wait for the kubelet.
	Kubelet Duration `json:"kubelet,omitempty"`
	// KubernetesAPI bounds a request to the API server, with its repetitions. Default 4m, or a third of metadata.timeout if that is less.
	KubernetesAPI Duration `json:"kubernetesAPI,omitempty"`
	// EtcdAPI bounds a request to etcd.
	EtcdAPI Duration `json:"etcdAPI,omitempty"`
	// TLSBootstrap bounds the wait for the kubelet's client certificate.
	TLSBootstrap Duration `json:"tlsBootstrap,omitempty"`
	// Discovery bounds the validation of the cluster's address and certificate authority.
	Discovery Duration `json:"discovery,omitempty"`
}
