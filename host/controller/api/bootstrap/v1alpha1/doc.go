// Package v1alpha1 holds the resources that a Machine refers to: MachineBootstrapConfig, its template, its storage, and the claim for
// a storage of others. They follow the bootstrap contract v1beta2 of Cluster API.
//
// +kubebuilder:object:generate=true
// +groupName=bootstrap.cluster.x-k8s.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of the resources.
const Group = "bootstrap.cluster.x-k8s.io"

// GroupVersion returns the group and version of the resources.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: "v1alpha1"}
}

// AddToScheme registers the resources.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(),
		&MachineBootstrapConfig{}, &MachineBootstrapConfigList{},
		&MachineBootstrapConfigTemplate{}, &MachineBootstrapConfigTemplateList{},
		&MachineBootstrapStorage{}, &MachineBootstrapStorageList{},
		&MachineBootstrapDataClaim{}, &MachineBootstrapDataClaimList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
