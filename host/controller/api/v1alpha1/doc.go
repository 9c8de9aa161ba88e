// Package v1alpha1 holds the custom resources of the document kinds that machineadm serves, and their templates. The contract
// defines the kinds: zz_generated.types.go mirrors contract/v1alpha1 with types that a custom resource can have.
//
// +kubebuilder:object:generate=true
// +groupName=machineadm.cluster.x-k8s.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// GroupVersion returns the group and version of the resources.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: v1alpha1.Group, Version: v1alpha1.Version}
}

// AddToScheme registers the resources.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(),
		&ContainerRuntime{}, &ContainerRuntimeList{}, &ContainerRuntimeTemplate{}, &ContainerRuntimeTemplateList{},
		&Timesync{}, &TimesyncList{}, &TimesyncTemplate{}, &TimesyncTemplateList{},
		&Sysctl{}, &SysctlList{}, &SysctlTemplate{}, &SysctlTemplateList{},
		&DomainJoin{}, &DomainJoinList{}, &DomainJoinTemplate{}, &DomainJoinTemplateList{},
		&KubernetesNode{}, &KubernetesNodeList{}, &KubernetesNodeTemplate{}, &KubernetesNodeTemplateList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
