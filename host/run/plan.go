package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run/claims"
	"github.com/machineadm/machineadm/host/run/values"
)

// planAll plans every document before any is applied, so that an error anywhere in the stream ends the run before a change.
// An error ends the run at once.
func (r *runner) planAll(ctx context.Context, all []bound) ([]values.Planned, error) {
	var out []values.Planned
	for _, b := range all {
		if err := r.checkpoint(ctx); err != nil {
			return out, err
		}
		p, err := r.planFirst(ctx, b, outlook{leaving(out), len(all) > 1 && r.o.Mode != ModeValidate})
		if err != nil {
			return out, err
		}
		if r.o.Mode != ModeValidate {
			p.Final = claims.Unresolved(p, out, r.image())
		}
		if p.Final != nil {
			p.Result = r.warn(p.Doc, p.Result, p.Plan.Warnings...).Fail(p.FromPlugin(p.Result.By, p.Final))
			p.Plan.Claims, p.Pending = p.Pending.Claims, nil
		}
		leftOut := p.Result.Outcome == report.NotApplicable || p.Result.Reason == report.ReasonPhase
		if len(p.Secret) > 0 && !leftOut {
			p.Result = p.Result.Fail(slices.Concat(p.Secret, p.Result.Problems))
		}
		out = append(out, p)
		if p.Result.Settled {
			continue
		}
		changes, err := r.explained(ctx, p, out[:len(out)-1])
		if err != nil {
			return out, err
		}
		r.announce(p, changes)
	}
	if err := r.nameLater(ctx, out); err != nil {
		return out, err
	}
	conflicting := claims.Conflicts(out)
	if len(conflicting) == 0 && !slices.ContainsFunc(out, func(p values.Planned) bool { return p.Result.Outcome == report.Failed }) {
		var err error
		if conflicting, err = r.planAgain(ctx, out); err != nil {
			return out, err
		}
	}
	assumed := claims.Assumptions(out)
	for i, p := range out {
		warnings := assumed[p.Order]
		if r.o.Mode == ModeValidate || r.image() { // on a running machine the plan has looked for what is missing
			warnings = slices.Concat(warnings, claims.Disordered(p, out[:i], out[i+1:]))
		}
		p.Result = r.warn(p.Doc, p.Result, warnings...)
		out[i].Result = p.Result
		if wrong := conflicting[p.Order]; len(wrong) > 0 {
			out[i].Result = p.Result.Warn(p.Plan.Warnings...).Fail(append(p.Result.Problems, wrong...))
		}
	}
	return out, nil
}

// announce emits a plan, within the budget of a document.
func (r *runner) announce(p values.Planned, changes []PlannedChange) {
	shown, omitted := withinBudget(changes)
	res := p.Preview(r.image())
	if omitted > 0 {
		res.Warnings = append(slices.Clone(res.Warnings), fmt.Sprintf("%d changes or diffs are too large to be shown", omitted))
	}
	pending := ""
	if p.Pending != nil {
		pending = cmp.Or(p.Pending.Message, values.ViolationsText(p.Pending), "the machine is not ready")
		if hint := hintOf(p.Pending); hint != "" {
			pending += "; " + hint
		}
	}
	r.log.Info("document planned", "document", p.Label(), "provider", p.Result.By.Provider, "changes", len(p.Plan.Changes), "pending", pending != "")
	if r.o.Mode != ModeValidate { // validate plans against an empty root: no machine has these changes
		r.emitFor(p.Doc, res, Event{Type: EventDocumentPlanned, Planned: shown, Pending: pending})
	}
}

func hintOf(e *pluginv1.Error) string {
	if e.Hint == "" && len(e.Violations) > 0 {
		return e.Violations[0].Hint
	}
	return e.Hint
}

// planFirst plans one document for the first time, with the best candidate that supports it. An error ends the run.
func (r *runner) planFirst(ctx context.Context, b bound, o outlook) (values.Planned, error) {
	out := values.Planned{Doc: b.Doc, Result: b.result, Provides: b.provides()}
	if b.Source != nil {
		out.Pending = b.Source.Pending
	}
	if b.result.Settled || b.Source != nil {
		return out, nil
	}
	refusals := b.refusals
	// In ModeValidate an open document is invalid only if every candidate that can serve this platform refuses it.
	var invalid, elsewhere *values.Planned
	for _, rank := range b.ranks {
		if len(rank) > 1 && r.o.Mode != ModeValidate {
			out.Result = values.Failed(b.Problem("spec.provider", tie(rank)))
			return out, nil
		}
		for _, c := range rank {
			p, refused, err := r.try(ctx, b, c, o)
			switch {
			case err != nil:
				return out, err
			case refused != "":
				refusals = append(refusals, refused)
			case r.o.Mode == ModeValidate && p.IsElsewhere():
				elsewhere = &p
			case b.provider != "", p.Result.Outcome != report.Failed, r.o.Mode != ModeValidate && !p.Another:
				if p.Pending != nil { // what the better ones refuse may be easier to cure
					p.Plan.Warnings = append(p.Plan.Warnings, passedOver(refusals[len(b.refusals):])...)
				}
				return p, nil
			case invalid == nil:
				invalid = &p
			}
		}
	}
	switch {
	case invalid != nil:
		return *invalid, nil
	case elsewhere != nil && len(refusals) == len(b.refusals):
		out.Result = r.contractOnly(b.Doc)
		out.Result.By = elsewhere.Result.By
		return out, nil
	}
	out.Result = values.Failed(b.Problem("", report.Error{
		Code: pluginv1.CodeUnsupported.String(), Message: "no installed provider can do this: " + strings.Join(refusals, "; "),
		Hint: cmp.Or(b.APIVersionHint(), "install a provider that can, or change what they refuse"),
	}))
	return out, nil
}

// passedOver are warnings about the providers that fit better and refuse the document.
func passedOver(refusals []string) (out []pluginv1.Warning) {
	for _, why := range refusals {
		out = append(out, pluginv1.Warning{Message: "a provider that fits better was passed over: " + why})
	}
	return out
}

func tie(rank []*values.Candidate) report.Error {
	var names []string
	for _, c := range rank {
		names = append(names, c.Binary)
	}
	return report.Error{
		Code: pluginv1.CodePrecondition.String(), Message: "several providers fit equally well: " + strings.Join(names, " and "),
		Hint: "name one in spec.provider, or in /etc/machineadm/defaults.yaml for every stream of this machine",
	}
}

// try plans a document with one candidate. A refusal leaves the document to the next candidate.
func (r *runner) try(ctx context.Context, b bound, c *values.Candidate, o outlook) (out values.Planned, refused string, err error) {
	out = values.Planned{Doc: b.Doc, Result: values.Result{By: c}, Provides: c.Kind.Provides}
	if r.otherPhase(c.Kind.Phase) {
		out.Result = out.Result.End(report.Deferred, report.ReasonPhase)
		return out, "", nil
	}
	out.Plan, err = r.requestPlan(ctx, b.Doc, c, o)
	var own values.Problems
	switch {
	case err == nil || values.EndsRun(err):
		return out, "", err
	case errors.As(err, &own):
		out.Result = out.Result.Fail(own)
		return out, "", nil
	}
	e := pluginv1.AsError(err)
	switch {
	case errors.Is(err, pluginv1.ErrCrashed):
	case e.Code == pluginv1.CodePrecondition, e.Code == pluginv1.CodeRetry,
		// Unsupported because of the platform, see IsElsewhere.
		e.Code == pluginv1.CodeUnsupported && r.o.Mode == ModeValidate && len(e.Violations) == 0:
		out.Pending, out.Plan.Warnings = e, e.Warnings
		return out, "", nil
	case e.Code == pluginv1.CodeUnsupported && b.provider == "":
		return out, c.Provider + ": " + cmp.Or(values.RefusalText(e), e.Error()), nil
	}
	out.Another = e.Code == pluginv1.CodeInvalidConfig && len(e.Violations) > 0 && !slices.ContainsFunc(e.Violations, func(v document.Violation) bool {
		return !strings.HasPrefix(v.Field, "spec.providerConfig")
	})
	out.Result = out.Result.Fail(b.FromPlugin(c, err))
	return out, "", nil
}

// otherPhase reports whether --phase excludes a kind. A kind without a phase counts as provisioning, which an image omits.
func (r *runner) otherPhase(phase pluginv1.Phase) bool {
	if phase == pluginv1.PhaseUnspecified {
		phase = pluginv1.PhaseProvisioning
	}
	return r.o.Phase != pluginv1.PhaseUnspecified && r.o.Phase != phase
}

// withinBudget omits diffs, and then whole changes, beyond the budget of a document, and counts them.
func withinBudget(changes []PlannedChange) (shown []PlannedChange, omitted int) {
	size := 0
	for _, c := range changes {
		size += len(c.ID) + len(c.Summary)
		if size > values.DocumentBudget {
			omitted++
			continue
		}
		if size+len(c.Diff) > values.DocumentBudget {
			c.Diff = ""
			omitted++
		}
		size += len(c.Diff)
		shown = append(shown, c)
	}
	return shown, omitted
}
