package run

import (
	"context"
	"fmt"
	"slices"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run/claims"
	"github.com/machineadm/machineadm/host/run/values"
)

// provides returns what a document can give to later ones, whichever candidate serves it; nil for anything.
func (b bound) provides() []string {
	if b.result.By != nil {
		return b.result.By.Kind.Provides
	}
	var out []string
	for _, c := range slices.Concat(b.ranks...) {
		if c.Kind.Provides == nil {
			return nil
		}
		out = append(append([]string{}, out...), c.Kind.Provides...)
	}
	return out
}

// nameLater adds to each final Precondition the later document that provides what is missing: the two are in the wrong order.
func (r *runner) nameLater(ctx context.Context, all []values.Planned) error {
	for i, p := range all {
		if p.Final == nil || p.Final.Final || len(p.Secret) > 0 { // whose problems are others
			continue
		}
		violations := p.Final.Violations
		if len(violations) == 0 {
			violations = []document.Violation{{}}
		}
		for n := range p.Result.Problems[:min(len(p.Result.Problems), len(violations))] {
			later, err := r.provider(ctx, p, violations[n].Needs, all[:i+1], all[i+1:])
			if err != nil {
				return err
			}
			if later != nil {
				there, e := later.ErrorAt("", report.Error{}), &p.Result.Problems[n].Err
				e.Message += fmt.Sprintf("; %s at %s:%d:%d provides it, and comes later", later.Label(), there.File, there.Line, there.Column)
				e.Hint = claims.PutBefore(*later)
			}
		}
	}
	return nil
}

// provider returns the first of the later documents that provides what a document needs; nil without any.
func (r *runner) provider(ctx context.Context, p values.Planned, need string, before, later []values.Planned) (*values.Planned, error) {
	for i, l := range later {
		if need != "" && l.Provides != nil && claims.Resolves(l, p, need, r.image()) {
			return &l, nil
		}
		if need != "" || len(l.Plan.Files) == 0 || !p.Result.By.Foresees() {
			continue
		}
		_, err := r.requestPlan(ctx, p.Doc, p.Result.By, outlook{files: leaving(slices.Concat(before, later[:i+1])), list: true})
		if values.EndsRun(err) {
			return nil, err
		}
		if err == nil {
			return &l, nil
		}
	}
	return nil, nil //nolint:nilnil // no document, and no error
}
