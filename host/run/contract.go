package run

import (
	"slices"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/resolve"
)

// checkContract decodes each document strictly into the struct of its kind, and reports the violations.
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
	var out problems
	for _, v := range document.Unmarshal(d.json, into) {
		out = append(out, d.invalid(v.Field, v.Message, v.Hint)...)
	}
	return out
}
