// Package render turns the specs of custom resources and of inline documents into those of the contract. It is pure: the caller
// reads Secrets.
package render

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/api/v1alpha1"
)

// Contract returns a spec as the contract has it: a pointer to the spec struct of a kind of machineadm, such as *SysctlSpec, or
// json.RawMessage for a kind of another group. lookup returns the value of a key of a Secret; its errors must not quote values.
//
// A kind of machineadm is decoded strictly. Fields that are required but absent are no error: the controller fills in some of
// them, the API server checks those of objects, and the plugin checks all of them. Contract returns every violation at once, as an
// *Error.
func Contract(apiVersion, kind string, spec []byte, lookup func(name, key string) ([]byte, error)) (any, error) {
	if !strings.HasPrefix(apiVersion, contract.Group+"/") {
		return foreign(spec, lookup)
	}
	doc := contract.New(kind)
	switch {
	case apiVersion != contract.APIVersion:
		return nil, &Error{Violations: []document.Violation{{Field: "apiVersion", Message: "is not served", Hint: "use " + contract.APIVersion}}}
	case doc == nil:
		return nil, &Error{Violations: []document.Violation{{
			Field: "kind", Message: "is not a kind of machineadm", Hint: "use one of " + strings.Join(contract.Kinds(), ", "),
		}}}
	}
	object := newObject(kind)
	if object == nil {
		object = contract.New(kind) // in a cluster only as a document in place: its secrets are in providerConfig, which has no type
	}
	violations := explained(document.Unmarshal(wrapped(spec), object), reflect.TypeOf(doc))
	// What was decoded is examined further, so that all errors are found at once.
	decoded, err := json.Marshal(reflect.ValueOf(object).Elem().FieldByName("Spec").Interface())
	if err != nil {
		return nil, &Error{Violations: append(violations, document.Violation{Field: "spec", Message: "is not JSON"})}
	}
	r := resolver{lookup: lookup}
	resolved := r.spec(decoded)
	violations = document.Join(violations, r.violations)
	if len(violations) == 0 {
		violations = explained(document.Unmarshal(wrapped(resolved), doc), reflect.TypeOf(doc))
	}
	if len(violations) > 0 {
		return nil, &Error{Violations: violations, causes: r.causes}
	}
	return reflect.ValueOf(doc).Elem().FieldByName("Spec").Addr().Interface(), nil
}

// foreign replaces the references of a spec whose fields are unknown.
func foreign(spec []byte, lookup func(name, key string) ([]byte, error)) (any, error) {
	var body struct {
		Spec map[string]any `json:"spec"`
	}
	r := resolver{lookup: lookup, violations: document.Unmarshal(wrapped(spec), &body)}
	var resolved json.RawMessage
	if len(r.violations) == 0 && len(spec) > 0 {
		resolved = r.spec(spec)
	}
	if len(r.violations) > 0 {
		return nil, &Error{Violations: r.violations, causes: r.causes}
	}
	return resolved, nil
}

// newObject returns an empty custom resource of a kind, or nil if the kind has none.
func newObject(kind string) any {
	switch kind {
	case contract.KindContainerRuntime:
		return &v1alpha1.ContainerRuntime{}
	case contract.KindTimesync:
		return &v1alpha1.Timesync{}
	case contract.KindSysctl:
		return &v1alpha1.Sysctl{}
	case contract.KindDomainJoin:
		return &v1alpha1.DomainJoin{}
	case contract.KindKubernetesNode:
		return &v1alpha1.KubernetesNode{}
	}
	return nil
}

// wrapped returns a document with the spec, so that field paths begin with spec.
func wrapped(spec []byte) []byte {
	if len(spec) == 0 {
		return []byte("{}")
	}
	if !json.Valid(spec) { // or it could end the wrapper
		return spec
	}
	return append(append([]byte(`{"spec":`), spec...), '}')
}

// explained replaces violations at secrets by what a secret looks like in a custom resource.
func explained(violations []document.Violation, doc reflect.Type) []document.Violation {
	if len(violations) == 0 { // the normal case: the search for secrets would cost more than all else
		return violations
	}
	secrets := document.SecretFields(doc)
	if len(secrets) == 0 {
		return violations
	}
	const key = `(?:\[[0-9]+\]|\["(?:[^"\\]|\\.)*"\]|\.[A-Za-z0-9_-]+)` // an index or a key of a map, as Path writes it
	for i, field := range secrets {
		secrets[i] = strings.ReplaceAll(regexp.QuoteMeta(field), `\[\]`, key)
	}
	secret := regexp.MustCompile(`^(` + strings.Join(secrets, "|") + `)(?:\.|$)`)
	for i, v := range violations {
		if found := secret.FindStringSubmatch(v.Field); found != nil {
			violations[i] = document.Violation{
				Field: found[1], Message: "must be a reference to a Secret",
				Hint: "write " + secretForm + ", with a key of a Secret in this namespace",
			}
		}
	}
	return slices.Compact(violations)
}
