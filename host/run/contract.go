package run

import (
	"slices"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/contract/v1alpha1/schema"
	"github.com/machineadm/machineadm/host/resolve"
)

// checkContract decodes each document strictly into the struct of its kind, and reports the violations and what breaks a rule of the schema.
func (r *runner) checkContract(s stream) error {
	wrong := slices.Clone(s.problems)
	for i, d := range s.docs {
		found := slices.Concat(d.wrong, d.contractProblems())
		if len(found) > 0 {
			r.results[i] = failed(found)
			wrong = append(wrong, found...)
		}
	}
	for _, d := range s.faulty {
		more := slices.DeleteFunc(d.contractProblems(), func(x problem) bool { return s.refusedField(d, x.err.Field) })
		r.problems = append(r.problems, more...)
		wrong = append(wrong, more...)
	}
	return wrong.sorted().orNil()
}

// isElsewhere reports whether a document is for other operating systems alone, whose plugins this one does not run. A misspelled
// one is none.
func (d doc) isElsewhere(os string) bool {
	known := func(name string) bool { return slices.Contains(target.OperatingSystems(), name) }
	return slices.ContainsFunc(d.When.OS, known) && !slices.Contains(d.When.OS, os)
}

// contractOnly returns the result of validating a document that only the plugin of another operating system can check.
func (r *runner) contractOnly(d doc) result {
	if wrong := d.contractProblems(); len(wrong) > 0 {
		return failed(wrong)
	}
	return r.warn(d, result{}, pluginv1.Warning{Message: "only the names, types, values and bounds of its fields are checked, because it is for " +
		"another operating system: run machineadm validate there to check the rest"})
}

func (d doc) contractProblems() problems {
	into := v1alpha1.New(d.Kind)
	if into == nil || d.APIVersion != v1alpha1.APIVersion {
		return nil
	}
	if d.isReference() {
		if _, err := resolve.Check(d.Kind, d.json); err != nil {
			return d.fromPlugin(nil, err)
		}
		return nil
	}
	violations := document.Unmarshal(d.json, into)
	if len(violations) == 0 {
		violations = document.Refused(into)
	}
	violations = document.Join(violations, schema.RulesFor(d.APIVersion, d.Kind).Violations(d.json))
	var out problems
	for _, v := range violations {
		out = append(out, d.invalid(v.Field, v.Message, v.Hint)...)
	}
	return out
}
