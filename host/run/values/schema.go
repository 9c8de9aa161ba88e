package values

import (
	"slices"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/contract/v1alpha1/schema"
	"github.com/machineadm/machineadm/host/resolve"
)

// IsElsewhere reports whether a document is for other operating systems alone, whose plugins this one does not run. A misspelled
// one is none.
func (d Doc) IsElsewhere(os string) bool {
	known := func(name string) bool { return slices.Contains(target.OperatingSystems(), name) }
	return slices.ContainsFunc(d.When.OS, known) && !slices.Contains(d.When.OS, os)
}

// ContractProblems returns what the schema of the contract refuses in the document; none for other kinds.
func (d Doc) ContractProblems() Problems {
	into := v1alpha1.New(d.Kind)
	if into == nil || d.APIVersion != v1alpha1.APIVersion {
		return nil
	}
	if d.IsReference() {
		if _, err := resolve.Check(d.Kind, d.Text); err != nil {
			return d.FromPlugin(nil, err)
		}
		return nil
	}
	violations := document.Unmarshal(d.Text, into)
	if len(violations) == 0 {
		violations = document.Refused(into)
	}
	violations = document.Join(violations, schema.RulesFor(d.APIVersion, d.Kind).Violations(d.Text))
	var out Problems
	for _, v := range violations {
		out = append(out, d.Invalid(v.Field, v.Message, v.Hint)...)
	}
	return out
}
