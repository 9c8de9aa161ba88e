// Package render turns the specs of custom resources and of inline documents into specs of the contract. It is pure: the caller
// reads Secrets.
package render

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/contract/v1alpha1/schema"
)

// Contract returns a spec as the contract has it: a pointer to the spec struct of a kind of machineadm, such as *SysctlSpec, or
// json.RawMessage for a kind of another group. lookup returns the value of a key of a Secret; its errors must not quote values.
//
// A kind of machineadm is decoded strictly, and has to keep the rules of its schema for values, bounds and numbers of items. Fields that are required but absent are no error: the controller fills in some of
// them, the API server checks the specs of objects, and the plugin checks all of them. Contract returns every violation at once, as an
// *Error, unless the spec as a whole is no mapping or has a field twice.
func Contract(apiVersion, kind string, spec []byte, lookup func(name, key string) ([]byte, error)) (any, error) {
	r := resolver{lookup: lookup}
	if !strings.HasPrefix(apiVersion, contract.Group+"/") {
		resolved := r.resolve(spec, nil)
		if err := r.failed(nil); err != nil {
			return nil, err
		}
		return json.RawMessage(resolved), nil
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
	of, _ := reflect.TypeOf(doc).Elem().FieldByName("Spec")
	var decoding []document.Violation
	if resolved := r.resolve(spec, of.Type); resolved != nil {
		whole := wrapped(resolved)
		decoding = document.Join(document.Unmarshal(whole, doc), schema.RulesFor(apiVersion, kind).Violations(whole))
		for i := range decoding {
			decoding[i].Hint = strings.ReplaceAll(decoding[i].Hint, document.SecretForm, secretForm)
		}
	}
	if err := r.failed(decoding); err != nil {
		return nil, err
	}
	return reflect.ValueOf(doc).Elem().FieldByName("Spec").Addr().Interface(), nil
}
