package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KindMachineBootstrapStorage is the kind of a MachineBootstrapStorage.
const KindMachineBootstrapStorage = "MachineBootstrapStorage"

// MachineBootstrapStorage says where the documents of machines lie, instead of in their user data, and whether their reports come back.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=machinebootstrapstorages,scope=Namespaced,categories=cluster-api,shortName=mbs
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta1=v1alpha1"
// +kubebuilder:metadata:labels="clusterctl.cluster.x-k8s.io/move="
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type MachineBootstrapStorage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	// +required
	Spec MachineBootstrapStorageSpec `json:"spec,omitempty,omitzero"`
}

// MachineBootstrapStorageSpec is the desired state of a MachineBootstrapStorage.
//
// +kubebuilder:validation:XValidation:rule="has(self.server) != has(self.source)",message="must have either server or source"
// +kubebuilder:validation:XValidation:rule="!has(self.encryption) || has(self.source)",message="encryption is for source",fieldPath=".encryption"
type MachineBootstrapStorageSpec struct {
	// Server is the endpoint of the manager: a machine fetches its documents from it by HTTPS, with a token of its own, and sends its
	// report to it. The manager has to run with --server-url.
	// +optional
	Server *ServerStorage `json:"server,omitempty"`
	// Source is an object store, to which the manager writes the documents by a source plugin. The manager has to run with the provider in
	// --storage-providers.
	// +optional
	Source *SourceStorage `json:"source,omitempty"`
	// Encryption encrypts the documents before they are stored: who can read the store, and not use the key, reads none. The manager has to run
	// with the provider in --storage-providers.
	// +optional
	Encryption *StorageEncryption `json:"encryption,omitempty"`
	// Expiry is how long the documents can be fetched after they were made, as a Go duration. By default 24h. They are removed
	// earlier when the machine has joined.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(h|m|s))+$`
	Expiry string `json:"expiry,omitempty"`
	// Report says what is expected of the reports of machines.
	// +optional
	Report StorageReport `json:"report,omitempty,omitzero"`
}

// ServerStorage is the endpoint of the manager. It has no settings.
type ServerStorage struct{}

// SourceStorage is an object store that a source plugin writes to.
type SourceStorage struct {
	// Provider names the source plugin, such as s3.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Provider string `json:"provider,omitempty"`
	// URIPrefix is the beginning of the location of every object, in the form of the provider, such as s3://BUCKET/PREFIX/. The manager puts a
	// name behind it that cannot be guessed.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	URIPrefix string `json:"uriPrefix,omitempty"`
	// Access says by which right a machine fetches its object: role is a right of the machine itself, such as that of its instance;
	// presigned is a URL that admits its holder for some time. By default role.
	// +optional
	// +kubebuilder:validation:Enum=role;presigned
	Access string `json:"access,omitempty"`
	// ProviderConfig is what the manager needs to write objects; the README of the plugin lists its fields. A secret value in it is
	// {valueFrom: {secretKeyRef: {name, key}}}. A machine does not get it.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderConfig *apiextensionsv1.JSON `json:"providerConfig,omitempty"`
}

// StorageEncryption makes a passphrase of its own for the documents of each machine, by a key provider.
type StorageEncryption struct {
	// Provider names the key provider, such as awskms.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Provider string `json:"provider,omitempty"`
	// Key is the name of the key that protects the passphrases, in the form of the provider.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Key string `json:"key,omitempty"`
	// ProviderConfig is what the manager needs to use the key; the README of the plugin lists its fields. A secret value in it is
	// {valueFrom: {secretKeyRef: {name, key}}}. A machine does not get it.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderConfig *apiextensionsv1.JSON `json:"providerConfig,omitempty"`
	// MachineConfig is the providerConfig of the EncryptedConfig, which a machine gets. A secret value in it is as in providerConfig.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	MachineConfig *apiextensionsv1.JSON `json:"machineConfig,omitempty"`
}

// The values of SourceStorage.Access.
const (
	AccessRole      = "role"
	AccessPresigned = "presigned"
)

// StorageReport says what is expected of the report of a machine.
//
// +kubebuilder:validation:XValidation:rule="!has(self.deadline) || !has(self.disabled) || !self.disabled",message="no deadline without reports",fieldPath=".deadline"
type StorageReport struct {
	// Deadline is how long a machine without a node may send no report, as a Go duration, from the provision of its infrastructure and
	// from its fetch of the documents. By default 20m.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(h|m|s))+$`
	Deadline string `json:"deadline,omitempty"`
	// Disabled keeps the reports on the machines.
	// +optional
	Disabled *bool `json:"disabled,omitempty"`
}

// MachineBootstrapStorageList is a list of MachineBootstrapStorages.
//
// +kubebuilder:object:root=true
type MachineBootstrapStorageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []MachineBootstrapStorage `json:"items"`
}

// StorageReference names the storage of the documents, in the namespace of the config: a MachineBootstrapStorage, or an object of another API
// group, whose controller fulfils a MachineBootstrapDataClaim.
type StorageReference struct {
	// APIGroup is the API group of the storage, such as bootstrap.cluster.x-k8s.io.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	APIGroup string `json:"apiGroup,omitempty"`
	// Kind is the kind of the storage, such as MachineBootstrapStorage.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]*$`
	Kind string `json:"kind,omitempty"`
	// Name is the name of the storage.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name,omitempty"`
}

// BootstrapStatus is what a machine reported last. It is not moved by clusterctl, and comes again with the next report.
type BootstrapStatus struct {
	// FetchedAt is when the machine first fetched its documents.
	// +optional
	FetchedAt *metav1.Time `json:"fetchedAt,omitempty"`
	// ReportedAt is when the report arrived.
	// +optional
	ReportedAt *metav1.Time `json:"reportedAt,omitempty"`
	// Sequence is the number of the report. A report with a smaller number, or the same, changes nothing.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Sequence int64 `json:"sequence,omitempty"`
	// RunID is the ID of the run.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	RunID string `json:"runID,omitempty"`
	// Outcome is the outcome of the run: Running, Succeeded, Failed, Invalid, RebootRequired or Interrupted.
	// +optional
	// +kubebuilder:validation:Enum=Running;Succeeded;Failed;Invalid;RebootRequired;Interrupted
	Outcome string `json:"outcome,omitempty"`
	// ExitCode is the exit code of the run.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=255
	ExitCode *int32 `json:"exitCode,omitempty"`
	// Document is the document of the first error, as KIND/NAME; empty for an error of the run.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Document string `json:"document,omitempty"`
	// Phase is the phase of the plugin in which the first error occurred, such as a phase of kubeadm.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Phase string `json:"phase,omitempty"`
	// Code is the code of the first error, such as Precondition.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Code string `json:"code,omitempty"`
	// Message is the first line of machineadm status on the machine: outcome, document, stage, cause and remedy.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
	// Hint is the remedy of the first error.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Hint string `json:"hint,omitempty"`
	// Facts are facts of the first error for programs.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Facts map[string]string `json:"facts,omitempty"`
	// StartedAt is when the run began, by the clock of the machine.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// FinishedAt is when the run ended, by the clock of the machine.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// Documents are the documents of the run, at most 100.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Documents []BootstrapDocument `json:"documents,omitempty"`
}

// BootstrapDocument is the outcome of one document.
type BootstrapDocument struct {
	// Name is KIND/NAME.
	// +kubebuilder:validation:MaxLength=512
	Name string `json:"name"`
	// Outcome is the outcome of the document, empty if the run ended before it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Outcome string `json:"outcome,omitempty"`
	// Duration is how long it took.
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`
}
