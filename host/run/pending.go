package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// anyFile is what a kind provides whose documents write files for later ones, and what a Precondition needs that names nothing.
const anyFile = "file:"

// provides returns what a document can give to later ones, whichever candidate serves it; nil for anything.
func (b bound) provides() []string {
	if b.result.by != nil {
		return b.result.by.kind.Provides
	}
	var out []string
	for _, c := range slices.Concat(b.ranks...) {
		if c.kind.Provides == nil {
			return nil
		}
		out = append(append([]string{}, out...), c.kind.Provides...)
	}
	return out
}

// unresolved returns the part of a document's Precondition that its turn cannot satisfy; nil if the document stays pending. The plugin
// says that nothing resolves it, or no earlier document can.
func (r *runner) unresolved(p planned, earlier []planned) *pluginv1.Error {
	if r.o.Mode == ModeValidate || p.pending == nil || p.pending.Code != pluginv1.CodePrecondition {
		return nil
	}
	out := *p.pending
	if out.Final {
		return &out
	}
	resolved := func(v document.Violation) bool {
		return slices.ContainsFunc(earlier, func(e planned) bool { return r.resolves(e, p, v.Needs) })
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
	case len(p.pending.Violations):
	default:
		out.Message, out.Hint = "", "" // all violations have theirs
	}
	return &out
}

// resolves reports whether a document can give a later one what that needs.
func (r *runner) resolves(earlier, p planned, need string) bool {
	unseen := slices.ContainsFunc(earlier.plan.Changes, func(c pluginv1.Change) bool {
		seen, later := c.Listed && p.result.by.foresees(), c.NeedsLive && r.image()
		return !seen && !later
	})
	switch {
	case !unseen && earlier.isPlanned():
		return false
	case earlier.provides == nil || p.provides == nil:
		return true
	}
	return earlier.gives(need)
}

// isPlanned reports whether a document has a plan, which says what it changes and claims.
func (p planned) isPlanned() bool { return p.pending == nil && p.result.outcome != report.Failed }

// gives reports whether a document can give what another one needs: by a claim of this id, or of any with this beginning, or without a
// plan by what its kind provides.
func (p planned) gives(need string) bool {
	return need != "" && slices.ContainsFunc(p.claims(), func(c pluginv1.Claim) bool {
		return !c.Assumed && (c.ID == need || strings.HasSuffix(need, ":") && strings.HasPrefix(c.ID, need))
	}) || !p.isPlanned() && slices.ContainsFunc(p.provides, func(id string) bool { return strings.HasPrefix(cmp.Or(need, anyFile), id) })
}

// disordered returns the warnings of a document whose changes need what only a later document claims. On a running machine the plan has
// looked for what is missing.
func (r *runner) disordered(p planned, earlier, later []planned) []pluginv1.Warning {
	var out []pluginv1.Warning
	for _, need := range p.plan.Needs {
		has := func(e planned) bool { return e.gives(need) }
		at := slices.IndexFunc(later, has)
		if at < 0 || r.o.Mode != ModeValidate && !r.image() || slices.ContainsFunc(earlier, has) {
			continue
		}
		there := later[at].locate("", report.Error{})
		out = append(out, pluginv1.Warning{Message: fmt.Sprintf("%s at %s:%d:%d, which comes later, provides what this document needs (%s): unless the machine has it already, %s",
			later[at].label(), there.File, there.Line, there.Column, need, putBefore(later[at]))})
	}
	return out
}

// putBefore is the remedy for a document that comes too late.
func putBefore(later planned) string {
	return "put " + later.label() + " before this document; in a cluster with before or after in its reference"
}

// nameLater adds to each final Precondition the later document that provides what is missing: the two are in the wrong order.
func (r *runner) nameLater(ctx context.Context, all []planned) error {
	for i, p := range all {
		if p.final == nil || p.final.Final || len(p.secret) > 0 { // whose problems are others
			continue
		}
		violations := p.final.Violations
		if len(violations) == 0 {
			violations = []document.Violation{{}}
		}
		for n := range p.result.problems[:min(len(p.result.problems), len(violations))] {
			later, err := r.provider(ctx, p, violations[n].Needs, all[:i+1], all[i+1:])
			if err != nil {
				return err
			}
			if later != nil {
				there, e := later.locate("", report.Error{}), &p.result.problems[n].err
				e.Message += fmt.Sprintf("; %s at %s:%d:%d provides it, and comes later", later.label(), there.File, there.Line, there.Column)
				e.Hint = putBefore(*later)
			}
		}
	}
	return nil
}

// provider returns the first of the later documents that provides what a document needs; nil without any.
func (r *runner) provider(ctx context.Context, p planned, need string, before, later []planned) (*planned, error) {
	for i, l := range later {
		if need != "" && l.provides != nil && r.resolves(l, p, need) {
			return &l, nil
		}
		if need != "" || len(l.plan.Files) == 0 || !p.result.by.foresees() {
			continue
		}
		_, err := r.requestPlan(ctx, p.doc, p.result.by, outlook{files: leaving(slices.Concat(before, later[:i+1])), list: true})
		if endsRun(err) {
			return nil, err
		}
		if err == nil {
			return &l, nil
		}
	}
	return nil, nil //nolint:nilnil // no document, and no error
}
