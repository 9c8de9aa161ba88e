package cloud

import (
	"reflect"
	"slices"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// Config is the path of the providerConfig of a document.
const Config = document.Path("spec.providerConfig")

// Secrets returns the paths of the secrets in a providerConfig of this type.
func Secrets[C any]() []string {
	all := document.SecretFields(reflect.TypeFor[C]())
	for i := range all {
		all[i] = string(Config) + "." + all[i]
	}
	return all
}

// Violations collects the errors of a document.
type Violations []sdk.Violation

// Add adds the violation of a field.
func (v *Violations) Add(field document.Path, message, hint string) {
	*v = append(*v, sdk.Violation{Field: string(field), Message: message, Hint: hint})
}

// Credential adds a violation unless the secret of a field can be sent in a header: visible ASCII, at least a character.
func (v *Violations) Credential(field document.Path, s v1alpha1.Secret) {
	if value := s.Reveal(); len(value) == 0 || slices.ContainsFunc(value, func(b byte) bool { return b <= ' ' || b >= 0x7f }) {
		v.Add(field, "is missing, or has a space, a control character or one that is not ASCII", "give it alone, as {value: ...}")
	}
}

// Server adds a violation unless the text of a field is https://HOST[:PORT] alone.
func (v *Violations) Server(field document.Path, text string) {
	u, violations := ParseURL(string(field), text, false, true)
	if *v = append(*v, violations...); len(violations) == 0 && u.Scheme+"://"+u.Host != text {
		v.Add(field, "has more than https, a host and a port", "write it as https://HOST:PORT")
	}
}
