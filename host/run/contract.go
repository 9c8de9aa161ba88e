package run

import (
	"slices"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/host/run/values"
)

// checkContract decodes each document strictly into the struct of its kind, and reports the violations and what breaks a rule of the schema.
func (r *runner) checkContract(s values.Stream) error {
	wrong := slices.Clone(s.Problems)
	for i, d := range s.Docs {
		found := slices.Concat(d.Wrong, d.ContractProblems())
		if len(found) > 0 {
			r.results[i] = values.Failed(found)
			wrong = append(wrong, found...)
		}
	}
	for _, d := range s.Faulty {
		more := slices.DeleteFunc(d.ContractProblems(), func(x values.Problem) bool { return s.RefusedField(d, x.Err.Field) })
		r.problems = append(r.problems, more...)
		wrong = append(wrong, more...)
	}
	return wrong.Sorted().OrNil()
}

// contractOnly returns the result of validating a document that only the plugin of another operating system can check.
func (r *runner) contractOnly(d values.Doc) values.Result {
	if wrong := d.ContractProblems(); len(wrong) > 0 {
		return values.Failed(wrong)
	}
	return r.warn(d, values.Result{}, pluginv1.Warning{Message: "only the names, types, values and bounds of its fields are checked, because it is for " +
		"another operating system: run machineadm validate there to check the rest"})
}
