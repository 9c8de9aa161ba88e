package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// KindMachineBootstrapDataClaim is the kind of a MachineBootstrapDataClaim.
const KindMachineBootstrapDataClaim = "MachineBootstrapDataClaim"

// MachineBootstrapDataClaim asks the controller of a storage of another API group to store the documents of one machine. The manager makes it
// for a MachineBootstrapConfig, which controls it and has the same name. It deletes the claim when no machine fetches the documents any more.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=machinebootstrapdataclaims,scope=Namespaced,categories=cluster-api,shortName=mbdc
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta1=v1alpha1"
// +kubebuilder:printcolumn:name="Storage Kind",type="string",JSONPath=".spec.storageRef.kind"
// +kubebuilder:printcolumn:name="Storage",type="string",JSONPath=".spec.storageRef.name"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].reason"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type MachineBootstrapDataClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what to store, and where. It cannot be changed.
	// +required
	Spec MachineBootstrapDataClaimSpec `json:"spec,omitempty,omitzero"`
	// Status is written by the controller of the storage alone.
	// +optional
	Status MachineBootstrapDataClaimStatus `json:"status,omitempty,omitzero"`
}

// MachineBootstrapDataClaimSpec is the desired state of a MachineBootstrapDataClaim.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec cannot be changed"
type MachineBootstrapDataClaimSpec struct {
	// StorageRef names the storage. Its controller fulfils the claim.
	// +required
	StorageRef StorageReference `json:"storageRef,omitempty,omitzero"`
	// SecretName is the name of the Secret with the documents, in its key documents. They are stored byte for byte.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	SecretName string `json:"secretName,omitempty"`
	// SHA256 is the digest of the documents, as 64 hexadecimal digits in lower case. A machine refuses others.
	// +required
	// +kubebuilder:validation:MinLength=64
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9a-f]+$`
	SHA256 string `json:"sha256,omitempty"`
}

// MachineBootstrapDataClaimStatus is the observed state of a MachineBootstrapDataClaim. It has the form of the status of a plugin object.
type MachineBootstrapDataClaimStatus struct {
	// Conditions has Ready, which is True when the documents are stored, and whose message says otherwise what is missing.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the generation of the claim that the status belongs to.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// SecretName is the name of a Secret that the claim controls. Its key value is one RemoteConfig, by which the machine fetches the
	// documents. A new value of it replaces the one before until the machine has a node.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`
}

// MachineBootstrapDataClaimList is a list of MachineBootstrapDataClaims.
//
// +kubebuilder:object:root=true
type MachineBootstrapDataClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []MachineBootstrapDataClaim `json:"items"`
}
