package claims

import (
	"fmt"
	"slices"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run/values"
)

// Unresolved returns the part of a document's Precondition that its turn cannot satisfy; nil if the document stays pending. The plugin
// says that nothing resolves it, or no earlier document can.
func Unresolved(p values.Planned, earlier []values.Planned, image bool) *pluginv1.Error {
	if p.Pending == nil || p.Pending.Code != pluginv1.CodePrecondition {
		return nil
	}
	out := *p.Pending
	if out.Final {
		return &out
	}
	resolved := func(v document.Violation) bool {
		return slices.ContainsFunc(earlier, func(e values.Planned) bool { return Resolves(e, p, v.Needs, image) })
	}
	if len(out.Violations) == 0 {
		if resolved(document.Violation{}) {
			return nil
		}
		return &out
	}
	out.Violations = slices.DeleteFunc(slices.Clone(out.Violations), resolved)
	switch len(out.Violations) {
	case 0:
		return nil
	case len(p.Pending.Violations):
	default:
		out.Message, out.Hint = "", "" // all violations have theirs
	}
	return &out
}

// Resolves reports whether a document can give a later one what that needs.
func Resolves(earlier, p values.Planned, need string, image bool) bool {
	unseen := slices.ContainsFunc(earlier.Plan.Changes, func(c pluginv1.Change) bool {
		seen, later := c.Listed && p.Result.By.Foresees(), c.NeedsLive && image
		return !seen && !later
	})
	switch {
	case !unseen && earlier.IsPlanned():
		return false
	case earlier.Provides == nil || p.Provides == nil:
		return true
	}
	return earlier.Gives(need)
}

// Disordered returns the warnings of a document whose changes need what only a later document claims.
func Disordered(p values.Planned, earlier, later []values.Planned) []pluginv1.Warning {
	var out []pluginv1.Warning
	for _, need := range p.Plan.Needs {
		has := func(e values.Planned) bool { return e.Gives(need) }
		at := slices.IndexFunc(later, has)
		if at < 0 || slices.ContainsFunc(earlier, has) {
			continue
		}
		there := later[at].ErrorAt("", report.Error{})
		out = append(out, pluginv1.Warning{Message: fmt.Sprintf("%s at %s:%d:%d, which comes later, provides what this document needs (%s): unless the machine has it already, %s",
			later[at].Label(), there.File, there.Line, there.Column, need, PutBefore(later[at]))})
	}
	return out
}

// PutBefore is the remedy for a document that comes too late.
func PutBefore(later values.Planned) string {
	return "put " + later.Label() + " before this document; in a cluster with before or after in its reference"
}
