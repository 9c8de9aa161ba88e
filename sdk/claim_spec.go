package sdk

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
)

// ClaimSpec claims every field of a specification, a struct with json tags, as thing#FIELD; it leaves out provider. A field
// that the document leaves out is claimed as well: use it where a document removes what an earlier one wrote for such a
// field, so that two different documents would change the machine in every run. It needs no installed daemon, so that
// validation finds the same conflicts. Thing is the part of the machine, such as "unit:containerd.service".
func ClaimSpec(m Machine, thing string, spec any) error {
	of := reflect.ValueOf(spec)
	for i := range of.NumField() {
		name, options, _ := strings.Cut(of.Type().Field(i).Tag.Get("json"), ",")
		if name == "provider" {
			continue
		}
		var value []string
		if field := of.Field(i); !field.IsZero() && (options != "omitempty" || !isEmpty(field)) {
			one := reflect.New(of.Type()).Elem()
			one.Field(i).Set(field)
			var text bytes.Buffer
			if err := document.Encode(&text, one.Interface()); err != nil {
				return fmt.Errorf("encode the field %s for a claim: %w", name, err)
			}
			value = []string{text.String()}
		}
		m.Claim(thing+"#"+name, "spec."+name, value...)
	}
	return nil
}

// isEmpty reports whether a field is a map or a list without elements, which says as much as no field.
func isEmpty(field reflect.Value) bool {
	return (field.Kind() == reflect.Map || field.Kind() == reflect.Slice) && field.Len() == 0
}
