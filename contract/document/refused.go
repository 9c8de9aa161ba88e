package document

import "github.com/machineadm/machineadm/contract/v1alpha1"

// Refused returns what no node accepts of a document of the contract, or of its spec, whatever the machine and the provider are. Kinds without
// such a rule have none.
func Refused(of any) (all []Violation) {
	switch d := of.(type) {
	case *v1alpha1.Sysctl:
		of = d.Spec
	case *v1alpha1.ContainerRuntime:
		of = d.Spec
	case *v1alpha1.Timesync:
		of = d.Spec
	case *v1alpha1.KubernetesNode:
		of = d.Spec
	case *v1alpha1.DomainJoin:
		of = d.Spec
	}
	spec, ok := of.(interface{ Refused() []v1alpha1.Refusal })
	if !ok {
		return nil
	}
	for _, refused := range spec.Refused() {
		all = append(all, Violation{Field: string(PathOf(refused.Path...)), Message: refused.Message, Hint: refused.Hint})
	}
	return all
}
