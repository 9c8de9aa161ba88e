package v1alpha1

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// The roles of a KubernetesNode.
const (
	// ControlPlaneInit creates a cluster.
	ControlPlaneInit = "controlPlaneInit"
	// ControlPlaneJoin joins a cluster as a further control plane.
	ControlPlaneJoin = "controlPlaneJoin"
	// Worker joins a cluster as a worker.
	Worker = "worker"
)

// RoleField is a field of a KubernetesNode that has a meaning for some roles alone.
type RoleField struct {
	// Field is the path of the field, such as spec.apiServer.args.
	Field string
	// Roles are those for which it has a meaning.
	Roles []string
}

// PatchTargets are what a node of any role generates and spec.patches can change: first the components with a static pod.
func PatchTargets() []string {
	return []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd", "kubeletconfiguration", "corednsdeployment", "kubeproxydaemonset"}
}

// targetRoles are the roles whose nodes generate the target of a patch, none if it is not known.
func targetRoles(target string) []string {
	switch slices.Index(PatchTargets(), target) {
	case -1:
		return nil
	case 0, 1, 2, 3:
		return []string{ControlPlaneInit, ControlPlaneJoin}
	case 4:
		return []string{ControlPlaneInit, ControlPlaneJoin, Worker}
	}
	return []string{ControlPlaneInit} // for the whole cluster
}

// Misplaced returns the fields of the document that have no meaning for its role, in the order of the contract. Which roles a field is
// for is in the tag roles of the field.
func (s *KubernetesNodeSpec) Misplaced() []RoleField {
	all := misplaced(reflect.ValueOf(s).Elem(), "spec", s.Role, false)
	for i, p := range s.Patches {
		if roles := targetRoles(p.Target); roles != nil && !slices.Contains(roles, s.Role) {
			all = append(all, RoleField{fmt.Sprintf("spec.patches[%d].target", i), roles})
		}
	}
	return all
}

// Fit removes the fields and patches that have no meaning for the role of the document, so that machines of several roles can share the
// others. It changes what the pointers of the document lead to.
func (s *KubernetesNodeSpec) Fit() {
	misplaced(reflect.ValueOf(s).Elem(), "spec", s.Role, true)
	s.Patches = slices.DeleteFunc(slices.Clone(s.Patches), func(p ComponentPatch) bool {
		roles := targetRoles(p.Target)
		return roles != nil && !slices.Contains(roles, s.Role)
	})
}

func misplaced(of reflect.Value, at, role string, remove bool) []RoleField {
	var all []RoleField
	for i := range of.NumField() {
		value, field := of.Field(i), of.Type().Field(i)
		if value.IsZero() {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		path := at + "." + name
		if only := field.Tag.Get("roles"); only != "" && !slices.Contains(strings.Split(only, ","), role) {
			all = append(all, RoleField{path, strings.Split(only, ",")})
			if remove {
				value.SetZero()
			}
			continue
		}
		inner := value
		if value.Kind() == reflect.Pointer {
			inner = value.Elem()
		}
		if inner.Kind() != reflect.Struct || inner.NumField() == 0 || !inner.Type().Field(0).IsExported() { // a Secret has no fields of the contract
			continue
		}
		found := misplaced(inner, path, role, remove)
		if remove && len(found) > 0 && inner.IsZero() {
			value.SetZero()
		}
		all = append(all, found...)
	}
	return all
}
