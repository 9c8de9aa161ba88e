package main

import (
	"fmt"
	"strings"
)

// columns are those that kubectl prints for a kind, as name and path, beside provider and age.
func columns() map[string][][2]string {
	return map[string][][2]string{
		"ContainerRuntime": {{"Sandbox Image", ".spec.sandboxImage"}},
		"Timesync":         {{"Profile", ".spec.profile"}},
		"Sysctl":           {{"Profiles", ".spec.profiles"}},
		"DomainJoin":       {{"Domain", ".spec.domain"}, {"State", ".spec.state"}},
		"KubernetesNode":   {{"Role", ".spec.role"}, {"Version", ".spec.kubernetesVersion"}},
	}
}

// kind writes the objects and lists of a kind and of its template.
func (w *writer) kind(kind, doc string) {
	column := func(name, typ, path string) string {
		return fmt.Sprintf("kubebuilder:printcolumn:name=%q,type=%q,JSONPath=%q", name, typ, path)
	}
	printed := []string{column("Provider", "string", ".spec.provider")}
	for _, c := range columns()[kind] {
		printed = append(printed, column(c[0], "string", c[1]))
	}
	w.object(kind, doc, append(printed, column("Age", "date", ".metadata.creationTimestamp")))
	w.object(kind+"Template", "", []string{column("Age", "date", ".metadata.creationTimestamp")})
	fmt.Fprint(w, strings.ReplaceAll(`
// KINDTemplateSpec is the desired state of a KINDTemplate.
type KINDTemplateSpec struct {
	// Template is what a KINDTemplate holds for each machine.
	// +required
	Template KINDTemplateResource `+"`json:\"template\"`"+`
}

// KINDTemplateResource is a KIND of each machine.
type KINDTemplateResource struct {
	// Metadata holds labels and annotations.
	// +optional
	Metadata clusterv1.ObjectMeta `+"`json:\"metadata,omitzero\"`"+`
	// Spec is the spec of the KIND.
	// +required
	Spec KINDSpec `+"`json:\"spec\"`"+`
}
`, "KIND", kind))
}

func (w *writer) object(kind, doc string, printed []string) {
	if doc == "" {
		doc = fmt.Sprintf("%s is a %s for each machine of a set.\n", kind, strings.TrimSuffix(kind, "Template"))
	}
	fmt.Fprintln(w)
	w.comment(doc+"\n", append([]string{
		"kubebuilder:object:root=true",
		fmt.Sprintf("kubebuilder:resource:path=%ss,scope=Namespaced,categories=cluster-api", strings.ToLower(kind)),
		`kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"`,
		`kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta1=v1alpha1"`,
		`kubebuilder:metadata:labels="clusterctl.cluster.x-k8s.io/move="`, // also of what no machine uses yet
	}, printed...)...)
	fmt.Fprint(w, strings.ReplaceAll(`type KIND struct {
	metav1.TypeMeta   `+"`json:\",inline\"`"+`
	metav1.ObjectMeta `+"`json:\"metadata,omitempty\"`"+`

	// Spec is the desired state.
	// +required
	Spec KINDSpec `+"`json:\"spec\"`"+`
}

// KINDList is a list of KINDs.
//
// +kubebuilder:object:root=true
type KINDList struct {
	metav1.TypeMeta `+"`json:\",inline\"`"+`
	metav1.ListMeta `+"`json:\"metadata,omitempty\"`"+`

	Items []KIND `+"`json:\"items\"`"+`
}
`, "KIND", kind))
}
