package run

import (
	"context"
	"errors"
	"slices"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/host/run/values"
)

// planAgain plans the documents once more, on the machine as the whole stream leaves it. A plan that still differs from its files, or
// fails, contradicts a later document: one apply could not settle the stream. It returns the problems by index of the document.
func (r *runner) planAgain(ctx context.Context, all []values.Planned) (map[int]values.Problems, error) {
	out := map[int]values.Problems{}
	for i, p := range all {
		if p.Result.Settled || p.Source != nil || p.Pending != nil || !p.Result.By.Foresees() || len(leaving(all[i+1:])) == 0 {
			continue
		}
		reason, err := r.unsettled(ctx, p, all)
		if err != nil {
			return nil, err
		}
		for j := i; reason != "" && j < len(all); j++ {
			earliest, err := r.unsettled(ctx, p, all[:j+1])
			if err != nil {
				return nil, err
			}
			if earliest == "" {
				continue
			}
			if j > i { // otherwise no other document is the cause
				out[i] = append(out[i], p.Undone("cannot hold beside the later ", all[j].Doc, earliest)...)
				out[j] = append(out[j], all[j].Undone("changes files that decide about the earlier ", p.Doc, earliest)...)
			}
			break
		}
	}
	return out, nil
}

// unsettled plans a document on what the plans of documents leave, its own among them, and says what is then still to do; "" for nothing.
func (r *runner) unsettled(ctx context.Context, p values.Planned, all []values.Planned) (string, error) {
	if err := r.checkpoint(ctx); err != nil {
		return "", err
	}
	plan, err := r.requestPlan(ctx, p.Doc, p.Result.By, outlook{files: leaving(all), list: true})
	if values.EndsRun(err) {
		return "", err
	}
	if e, ok := errors.AsType[*pluginv1.Error](err); ok && e.Code != pluginv1.CodeRetry {
		return values.TextOf(e), nil
	}
	if len(plan.Files) == 0 {
		return "", nil
	}
	return "it would change " + plan.Files[0].Path + " again", nil
}

// explained returns the changes of a plan, each with the earlier document that is its cause. The document is planned again, first without
// the files of any earlier document, then with the files of one document more each time, until every change has appeared.
func (r *runner) explained(ctx context.Context, p values.Planned, earlier []values.Planned) ([]PlannedChange, error) {
	changes := make([]PlannedChange, len(p.Plan.Changes))
	for i, c := range p.Plan.Changes {
		changes[i].Change = c
	}
	writers := slices.DeleteFunc(slices.Clone(earlier), func(e values.Planned) bool { return len(e.Plan.Files) == 0 })
	if r.o.Mode != ModePlan || len(writers) == 0 || len(changes) == 0 || !p.Result.By.Foresees() {
		return changes, nil
	}
	missing := map[int]bool{}
	for i := range changes {
		missing[i] = true
	}
	for n := 0; n < len(writers) && len(missing) > 0; n++ {
		plan, err := r.requestPlan(ctx, p.Doc, p.Result.By, outlook{files: leaving(writers[:n]), list: true})
		if values.EndsRun(err) {
			return nil, err
		}
		for i := range missing {
			if slices.ContainsFunc(plan.Changes, func(c pluginv1.Change) bool { return c == changes[i].Change }) {
				delete(missing, i)
			} else {
				changes[i].After = writers[n].Label()
			}
		}
	}
	return changes, nil
}
