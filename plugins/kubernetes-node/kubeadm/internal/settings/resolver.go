package settings

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// resolver collects every violation of a document, and the fields whose source does not exist yet. Its messages never quote
// a value.
type resolver struct {
	m          sdk.Machine
	addresses  func(name string) ([]netip.Addr, error) // of an interface
	spec       v1alpha1.KubernetesNodeSpec
	violations []sdk.Violation
	pending    []sdk.Violation
	blocked    []sdk.Violation // of the machine, which no other document can correct
	err        error           // of the machine
	result     Settings
}

// refuse records a violation where bad is true. It returns bad.
func (r *resolver) refuse(bad bool, field document.Path, message, hint string) bool {
	if bad {
		r.violations = append(r.violations, sdk.Violation{Field: string(field), Message: message, Hint: hint})
	}
	return bad
}

// refused reports whether something in a field was refused.
func (r *resolver) refused(field document.Path) bool {
	return slices.ContainsFunc(r.violations, func(v sdk.Violation) bool { return strings.HasPrefix(v.Field, string(field)) })
}

// invalid records an error as a violation. It reports whether there was one.
func (r *resolver) invalid(err error, field document.Path, hint string) bool {
	return err != nil && r.refuse(true, field, err.Error(), hint)
}

// oneOf refuses a value that is given and not known.
func (r *resolver) oneOf(field document.Path, value string, known ...string) {
	r.refuse(value != "" && !slices.Contains(known, value), field, "is not a value of this field", "use one of "+strings.Join(known, ", "))
}

// unique refuses an entry of a list that is there twice.
func (r *resolver) unique(field document.Path, seen map[string]document.Path, key string) {
	r.refuse(seen[key] != "", field, "is the same as "+string(seen[key]), "remove one of the two")
	if seen[key] == "" {
		seen[key] = field
	}
}

func (r *resolver) wait(field document.Path, message, hint string) {
	r.pending = append(r.pending, sdk.Violation{Field: string(field), Message: message, Hint: hint})
}

// fault refuses what is certain, and warns of the rest.
func (r *resolver) fault(at document.Path, message, hint string, certain bool) {
	if certain {
		r.refuse(true, at, message, hint)
		return
	}
	r.warn(at, message+"; "+hint)
}

// warn records what is valid and does not do what it was written for.
func (r *resolver) warn(at document.Path, message string) {
	r.result.Warnings = append(r.result.Warnings, sdk.Warning{Field: string(at), Message: message})
}
