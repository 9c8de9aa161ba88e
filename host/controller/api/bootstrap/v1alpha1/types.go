package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// KindMachineBootstrapConfig is the kind of a MachineBootstrapConfig.
const KindMachineBootstrapConfig = "MachineBootstrapConfig"

// MachineBootstrapConfig makes the bootstrap data of one Machine or MachinePool: a stream of machineadm documents in the format
// that the first boot of its operating system reads.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=machinebootstrapconfigs,scope=Namespaced,categories=cluster-api,shortName=mbc
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta1=v1alpha1"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 237",message="metadata.name has at most 237 characters: -machineadm-data is added for the Secret with the data"
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].reason"
// +kubebuilder:printcolumn:name="Bootstrap",type="string",JSONPath=".status.bootstrap.outcome"
// +kubebuilder:printcolumn:name="Document",type="string",JSONPath=".status.bootstrap.document",priority=10
// +kubebuilder:printcolumn:name="Data Secret",type="string",JSONPath=".status.dataSecretName"
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=".status.conditions[?(@.type=='Paused')].status",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type MachineBootstrapConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	// +optional
	Spec MachineBootstrapConfigSpec `json:"spec,omitempty,omitzero"`
	// Status is the observed state.
	// +optional
	Status MachineBootstrapConfigStatus `json:"status,omitempty,omitzero"`
}

// MachineBootstrapConfigSpec is the desired state of a MachineBootstrapConfig. A document comes from an object, from a template
// or from the spec itself; together they are the stream.
type MachineBootstrapConfigSpec struct {
	// PluginRefs are objects of plugin kinds, such as Sysctl, which several configs may share.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	PluginRefs []PluginReference `json:"pluginRefs,omitempty"`
	// PluginTemplateRefs are templates of plugin kinds, such as SysctlTemplate. A template of machineadm's own kinds is used
	// as it is. One of any other kind is cloned, so that its controller sees an object for each machine.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	PluginTemplateRefs []PluginReference `json:"pluginTemplateRefs,omitempty"`
	// Documents are documents in place, for patches of a ClusterClass, which reach no other object.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Documents []Document `json:"documents,omitempty"`
	// Format is the form of the bootstrap data. By default it is cloudConfig.
	// +optional
	Format Format `json:"format,omitempty,omitzero"`
	// StorageRef names where the documents lie, instead of in the bootstrap data, which then has no secret but a token for them.
	// +optional
	StorageRef *StorageReference `json:"storageRef,omitempty"`
}

// PluginReference names an object of a plugin kind in the namespace of the config.
type PluginReference struct {
	// APIGroup is the API group of the object, such as machineadm.cluster.x-k8s.io.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	APIGroup string `json:"apiGroup,omitempty"`
	// Kind is the kind of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]*$`
	Kind string `json:"kind,omitempty"`
	// Name is the name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name,omitempty"`

	Placement `json:",inline"`
}

// Placement is what a document has beside its spec.
type Placement struct {
	// Before lists documents that come after this one: KIND for all of a kind, or KIND/NAME.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=317
	Before []string `json:"before,omitempty"`
	// After lists documents that come before this one: KIND for all of a kind, or KIND/NAME.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=317
	After []string `json:"after,omitempty"`
	// Timeout bounds the time to apply the document, as a Go duration such as 5m. By default 15m.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	Timeout string `json:"timeout,omitempty"`
	// When limits the document to some machines.
	// +optional
	When *Selector `json:"when,omitempty"`
}

// Selector selects machines. A machine matches if it matches every list that is set.
type Selector struct {
	// OS lists operating systems: linux, windows.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	OS []string `json:"os,omitempty"`
	// Distributions lists ID values of os-release.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Distributions []string `json:"distributions,omitempty"`
	// Architectures lists architectures by their names in Go, such as amd64.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Architectures []string `json:"architectures,omitempty"`
}

// Document is a document in place.
type Document struct {
	// APIVersion is the API group and version of the document, such as machineadm.cluster.x-k8s.io/v1alpha1.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind is the kind of the document.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]*$`
	Kind string `json:"kind,omitempty"`
	// Name is the name of the document, unique in its kind.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	Placement `json:",inline"`

	// Spec is the spec of the document. A secret value in it is {valueFrom: {secretKeyRef: {name, key}}}.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec runtime.RawExtension `json:"spec,omitempty,omitzero"`
}

// The values of Format.Type.
const (
	FormatCloudConfig   = "cloudConfig"
	FormatIgnition      = "ignition"
	FormatCloudbaseInit = "cloudbaseInit"
	FormatUnattend      = "unattend"
	FormatTalos         = "talos"
	FormatCombustion    = "combustion"
	FormatPlain         = "plain"
)

// Format is the form of the bootstrap data.
//
// +kubebuilder:validation:XValidation:rule="!has(self.version) || has(self.type) && self.type == 'ignition'",message="version is for type ignition",fieldPath=".version"
type Format struct {
	// Type is what reads the data on the machine. By default cloudConfig.
	// +optional
	// +kubebuilder:validation:Enum=cloudConfig;ignition;cloudbaseInit;unattend;talos;combustion;plain
	Type string `json:"type,omitempty"`
	// Version is the version of the Ignition specification. By default 3.3.
	// +optional
	// +kubebuilder:validation:Enum="3.0";"3.1";"3.2";"3.3";"3.4";"3.5"
	Version string `json:"version,omitempty"`
	// TemplateRef names a template of the data, in the language of Go's text/template. Its functions are machine_config, base64,
	// gzipBase64, json, xml and dataURL.
	// +optional
	TemplateRef *TemplateReference `json:"templateRef,omitempty"`
	// Target is the infrastructure, which limits the size of the data.
	// +optional
	// +kubebuilder:validation:Enum=ec2;azure;gce;vsphere;virtualbox
	Target string `json:"target,omitempty"`
	// MaxBytes limits the size of the data, instead of the limit of the target. At most 1 MiB, the limit of a Secret.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1048576
	MaxBytes int32 `json:"maxBytes,omitempty"`
}

// TemplateReference names a template in a ConfigMap or a Secret of the same namespace.
type TemplateReference struct {
	// Kind is ConfigMap or Secret.
	// +required
	// +kubebuilder:validation:Enum=ConfigMap;Secret
	Kind string `json:"kind,omitempty"`
	// Name is the name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name,omitempty"`
	// Key is the key of the template in the object. By default value.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}

// MachineBootstrapConfigStatus is the observed state of a MachineBootstrapConfig. All of it can be made again from other
// objects.
type MachineBootstrapConfigStatus struct {
	// Conditions are Paused, PluginsReady, DocumentsValid, CertificatesAvailable, DataSecretAvailable, InputsUpToDate and Ready, and
	// BootstrapSucceeded if reports come back.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Initialization is what Cluster API waits for before it makes a machine.
	// +optional
	Initialization Initialization `json:"initialization,omitempty,omitzero"`
	// DataSecretName is the name of the Secret with the bootstrap data.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	DataSecretName string `json:"dataSecretName,omitempty"`
	// Ready is initialization.dataSecretCreated for releases of Cluster API that read the contract v1beta1.
	// +optional
	Ready *bool `json:"ready,omitempty"`
	// ObservedGeneration is the generation of the config that the status belongs to.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Plugins are the objects that the documents come from.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=300
	Plugins []PluginStatus `json:"plugins,omitempty"`
	// Order lists the documents of the stream in order, as KIND/NAME.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	Order []string `json:"order,omitempty"`
	// Bootstrap is what the machine reported, if the config has a storage.
	// +optional
	Bootstrap *BootstrapStatus `json:"bootstrap,omitempty"`
}

// Initialization is what Cluster API waits for before it makes a machine.
//
// +kubebuilder:validation:MinProperties=1
type Initialization struct {
	// DataSecretCreated says that the bootstrap data is there.
	// +optional
	DataSecretCreated *bool `json:"dataSecretCreated,omitempty"`
}

// PluginStatus is the state of an object that a document comes from.
type PluginStatus struct {
	// Kind is the kind of the object.
	Kind string `json:"kind"`
	// Name is the name of the object.
	Name string `json:"name"`
	// Ready says that the object has a document.
	Ready bool `json:"ready"`
	// Reason says why it has none.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message says the same to people.
	// +optional
	Message string `json:"message,omitempty"`
	// SecretName is the name of the Secret with the documents of an object of another group.
	// +optional
	SecretName string `json:"secretName,omitempty"`
}

// MachineBootstrapConfigList is a list of MachineBootstrapConfigs.
//
// +kubebuilder:object:root=true
type MachineBootstrapConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []MachineBootstrapConfig `json:"items"`
}

// MachineBootstrapConfigTemplate is what Cluster API makes MachineBootstrapConfigs from.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=machinebootstrapconfigtemplates,scope=Namespaced,categories=cluster-api,shortName=mbct
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta1=v1alpha1"
// +kubebuilder:metadata:labels="clusterctl.cluster.x-k8s.io/move="
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type MachineBootstrapConfigTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	// +optional
	Spec MachineBootstrapConfigTemplateSpec `json:"spec,omitempty,omitzero"`
}

// MachineBootstrapConfigTemplateSpec is the desired state of a MachineBootstrapConfigTemplate.
type MachineBootstrapConfigTemplateSpec struct {
	// Template is what is copied.
	// +required
	Template MachineBootstrapConfigTemplateResource `json:"template,omitempty,omitzero"`
}

// MachineBootstrapConfigTemplateResource is what is copied to a MachineBootstrapConfig.
type MachineBootstrapConfigTemplateResource struct {
	// Metadata holds the labels and annotations of the config.
	// +optional
	Metadata clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// Spec is the spec of the config.
	// +optional
	Spec MachineBootstrapConfigSpec `json:"spec,omitempty,omitzero"`
}

// MachineBootstrapConfigTemplateList is a list of MachineBootstrapConfigTemplates.
//
// +kubebuilder:object:root=true
type MachineBootstrapConfigTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []MachineBootstrapConfigTemplate `json:"items"`
}

// GetConditions returns the conditions.
func (c *MachineBootstrapConfig) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions.
func (c *MachineBootstrapConfig) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}
