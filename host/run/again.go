package run

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// planAgain plans the documents once more, on the machine as the whole stream leaves it. A plan that still differs from its files, or
// fails, contradicts a later document: one apply could not settle the stream. It returns the problems by index of the document.
func (r *runner) planAgain(ctx context.Context, all []planned) (map[int]problems, error) {
	out := map[int]problems{}
	for i, p := range all {
		if p.result.settled || p.source != nil || p.pending != nil || !p.result.by.foresees() || len(leaving(all[i+1:])) == 0 {
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
				out[i] = append(out[i], p.undone("cannot hold beside the later ", all[j].doc, earliest)...)
				out[j] = append(out[j], all[j].undone("changes files that decide about the earlier ", p.doc, earliest)...)
			}
			break
		}
	}
	return out, nil
}

// unsettled plans a document on what the plans of documents leave, its own among them, and says what is then still to do; "" for nothing.
func (r *runner) unsettled(ctx context.Context, p planned, all []planned) (string, error) {
	if err := r.checkpoint(ctx); err != nil {
		return "", err
	}
	plan, err := r.requestPlan(ctx, p.doc, p.result.by, outlook{files: leaving(all), list: true})
	if endsRun(err) {
		return "", err
	}
	if e, ok := errors.AsType[*pluginv1.Error](err); ok && e.Code != pluginv1.CodeRetry {
		return textOf(e), nil
	}
	if len(plan.Files) == 0 {
		return "", nil
	}
	return "it would change " + plan.Files[0].Path + " again", nil
}

// explained returns the changes of a plan, each with the earlier document that is its cause. The document is planned again, first without
// the files of any earlier document, then with the files of one document more each time, until every change has appeared.
func (r *runner) explained(ctx context.Context, p planned, earlier []planned) ([]PlannedChange, error) {
	changes := make([]PlannedChange, len(p.plan.Changes))
	for i, c := range p.plan.Changes {
		changes[i].Change = c
	}
	writers := slices.DeleteFunc(slices.Clone(earlier), func(e planned) bool { return len(e.plan.Files) == 0 })
	if r.o.Mode != ModePlan || len(writers) == 0 || len(changes) == 0 || !p.result.by.foresees() {
		return changes, nil
	}
	missing := map[int]bool{}
	for i := range changes {
		missing[i] = true
	}
	for n := 0; n < len(writers) && len(missing) > 0; n++ {
		plan, err := r.requestPlan(ctx, p.doc, p.result.by, outlook{files: leaving(writers[:n]), list: true})
		if endsRun(err) {
			return nil, err
		}
		for i := range missing {
			if slices.ContainsFunc(plan.Changes, func(c pluginv1.Change) bool { return c == changes[i].Change }) {
				delete(missing, i)
			} else {
				changes[i].After = writers[n].label()
			}
		}
	}
	return changes, nil
}

func (d doc) undone(what string, other doc, reason string) problems {
	there := other.locate("", report.Error{})
	return d.problem("", report.Error{
		Code: report.CodeConflict, Message: fmt.Sprintf("%s%s at %s:%d:%d: %s", what, other.label(), there.File, there.Line, there.Column, reason),
		Hint: "keep the setting in one of the two documents, or make both equal",
	})
}
