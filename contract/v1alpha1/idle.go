package v1alpha1

import (
	"maps"
	"reflect"
	"slices"
)

// Idle is a part of a document that asks for nothing, or has no effect without another part. Plugins and the controller refuse it, because
// something is missing.
type Idle struct {
	// Path has the names from spec to the field.
	Path []string
	// Message and Hint are those of the violation.
	Message, Hint string
}

// Idle returns the idle parts of the document.
func (s SysctlSpec) Idle() []Idle {
	if len(s.Parameters)+len(s.Profiles)+len(s.Modules) == 0 {
		return []Idle{{[]string{"spec"}, "has no parameters, profiles or modules", "add one of them, or remove the document"}}
	}
	return nil
}

// Idle returns the idle parts of the document. What providerConfig asks for is up to the provider.
func (s ContainerRuntimeSpec) Idle() (all []Idle) {
	const nothing, remove = "asks for nothing", "write what is wanted, or remove it"
	idle := func(value any, hint string, path ...string) {
		if v := reflect.ValueOf(value); v.Kind() != reflect.Pointer && v.IsZero() || v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().IsZero() {
			all = append(all, Idle{path, nothing, hint})
		}
	}
	idle(s.CDI, remove, "spec", "cdi")
	idle(s.NRI, remove, "spec", "nri")
	idle(s.CNI, remove, "spec", "cni")
	idle(s.Proxy, remove, "spec", "proxy")
	if p := s.Proxy; p != nil && len(p.NoProxy) > 0 && p.HTTP+p.HTTPS == "" && p.HTTPSecret.IsZero() && p.HTTPSSecret.IsZero() {
		all = append(all, Idle{[]string{"spec", "proxy", "noProxy"}, "means nothing without a proxy", "give http or https, or remove it"})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Runtimes)) {
		if b := s.Runtimes[name].BaseSpec; b != nil && len(b.Rlimits)+len(b.Patch) == 0 {
			all = append(all, Idle{[]string{"spec", "runtimes", name, "baseSpec"}, nothing, "give rlimits or patch, or remove it"})
		}
	}
	for _, host := range slices.Sorted(maps.Keys(s.Registries)) {
		idle(s.Registries[host], "give mirrors, a server, how it is reached or auth, or remove it", "spec", "registries", host)
	}
	s.Provider = ""
	idle(s, "write what is wanted, or remove the document", "spec")
	return all
}
