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
)

// planAll plans every document before any is applied, so that an error anywhere in the stream ends the run before a change.
// An error ends the run at once.
func (r *runner) planAll(ctx context.Context, all []bound) ([]planned, error) {
	var out []planned
	for _, b := range all {
		if err := r.checkpoint(ctx); err != nil {
			return out, err
		}
		p, err := r.planFirst(ctx, b, outlook{leaving(out), len(all) > 1 && r.o.Mode != ModeValidate})
		if err != nil {
			return out, err
		}
		if p.final = r.unresolved(p, out); p.final != nil {
			p.result = r.warn(p.doc, p.result, p.plan.Warnings...).fail(p.fromPlugin(p.result.by, p.final))
			p.plan.Claims, p.pending = p.pending.Claims, nil
		}
		leftOut := p.result.outcome == report.NotApplicable || p.result.reason == report.ReasonPhase
		if len(p.secret) > 0 && !leftOut {
			p.result = p.result.fail(slices.Concat(p.secret, p.result.problems))
		}
		out = append(out, p)
		if p.result.settled {
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
	conflicting := conflicts(out)
	if len(conflicting) == 0 && !slices.ContainsFunc(out, func(p planned) bool { return p.result.outcome == report.Failed }) {
		var err error
		if conflicting, err = r.planAgain(ctx, out); err != nil {
			return out, err
		}
	}
	assumed := assumptions(out)
	for i, p := range out {
		p.result = r.warn(p.doc, p.result, slices.Concat(assumed[p.index], r.disordered(p, out[:i], out[i+1:]))...)
		out[i].result = p.result
		if wrong := conflicting[p.index]; len(wrong) > 0 {
			out[i].result = p.result.warn(p.plan.Warnings...).fail(append(p.result.problems, wrong...))
		}
	}
	return out, nil
}

// announce emits a plan, within the budget of a document.
func (r *runner) announce(p planned, changes []PlannedChange) {
	shown, omitted := withinBudget(changes)
	res := p.preview(r.image())
	if omitted > 0 {
		res.warnings = append(slices.Clone(res.warnings), fmt.Sprintf("%d changes or diffs are too large to be shown", omitted))
	}
	pending := ""
	if p.pending != nil {
		pending = cmp.Or(p.pending.Message, violationsText(p.pending), "the machine is not ready")
		if hint := hintOf(p.pending); hint != "" {
			pending += "; " + hint
		}
	}
	r.log.Info("document planned", "document", p.label(), "provider", p.result.by.provider, "changes", len(p.plan.Changes), "pending", pending != "")
	if r.o.Mode != ModeValidate { // validate plans against an empty root: no machine has these changes
		r.emitFor(p.doc, res, Event{Type: EventDocumentPlanned, Planned: shown, Pending: pending})
	}
}

func hintOf(e *pluginv1.Error) string {
	if e.Hint == "" && len(e.Violations) > 0 {
		return e.Violations[0].Hint
	}
	return e.Hint
}

// planFirst plans one document for the first time, with the best candidate that supports it. An error ends the run.
func (r *runner) planFirst(ctx context.Context, b bound, o outlook) (planned, error) {
	out := planned{doc: b.doc, result: b.result, provides: b.provides()}
	if b.source != nil {
		out.pending = b.source.pending
	}
	if b.result.settled || b.source != nil {
		return out, nil
	}
	refusals := b.refusals
	// In ModeValidate an open document is invalid only if every candidate that can serve this platform refuses it.
	var invalid, elsewhere *planned
	for _, rank := range b.ranks {
		if len(rank) > 1 && r.o.Mode != ModeValidate {
			out.result = failed(b.problem("spec.provider", tie(rank)))
			return out, nil
		}
		for _, c := range rank {
			p, refused, err := r.try(ctx, b, c, o)
			switch {
			case err != nil:
				return out, err
			case refused != "":
				refusals = append(refusals, refused)
			case r.o.Mode == ModeValidate && p.isElsewhere():
				elsewhere = &p
			case b.provider != "", p.result.outcome != report.Failed, r.o.Mode != ModeValidate && !p.another:
				if p.pending != nil { // what the better ones refuse may be easier to cure
					p.plan.Warnings = append(p.plan.Warnings, passedOver(refusals[len(b.refusals):])...)
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
		out.result = r.contractOnly(b.doc)
		out.result.by = elsewhere.result.by
		return out, nil
	}
	out.result = failed(b.problem("", report.Error{
		Code: pluginv1.CodeUnsupported.String(), Message: "no installed provider can do this: " + strings.Join(refusals, "; "),
		Hint: cmp.Or(b.apiVersionHint(), "install a provider that can, or change what they refuse"),
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

func tie(rank []*candidate) report.Error {
	var names []string
	for _, c := range rank {
		names = append(names, c.binary)
	}
	return report.Error{
		Code: pluginv1.CodePrecondition.String(), Message: "several providers fit equally well: " + strings.Join(names, " and "),
		Hint: "name one in spec.provider, or in /etc/machineadm/defaults.yaml for every stream of this machine",
	}
}

// try plans a document with one candidate. A refusal leaves the document to the next candidate.
func (r *runner) try(ctx context.Context, b bound, c *candidate, o outlook) (out planned, refused string, err error) {
	out = planned{doc: b.doc, result: result{by: c}, provides: c.kind.Provides}
	if r.otherPhase(c.kind.Phase) {
		out.result = out.result.end(report.Deferred, report.ReasonPhase)
		return out, "", nil
	}
	out.plan, err = r.requestPlan(ctx, b.doc, c, o)
	var own problems
	switch {
	case err == nil || endsRun(err):
		return out, "", err
	case errors.As(err, &own):
		out.result = out.result.fail(own)
		return out, "", nil
	}
	e := pluginv1.AsError(err)
	switch {
	case errors.Is(err, pluginv1.ErrCrashed):
	case e.Code == pluginv1.CodePrecondition, e.Code == pluginv1.CodeRetry,
		// Unsupported because of the platform, see isElsewhere.
		e.Code == pluginv1.CodeUnsupported && r.o.Mode == ModeValidate && len(e.Violations) == 0:
		out.pending, out.plan.Warnings = e, e.Warnings
		return out, "", nil
	case e.Code == pluginv1.CodeUnsupported && b.provider == "":
		return out, c.provider + ": " + cmp.Or(refusalText(e), e.Error()), nil
	}
	out.another = e.Code == pluginv1.CodeInvalidConfig && len(e.Violations) > 0 && !slices.ContainsFunc(e.Violations, func(v document.Violation) bool {
		return !strings.HasPrefix(v.Field, "spec.providerConfig")
	})
	out.result = out.result.fail(b.fromPlugin(c, err))
	return out, "", nil
}

// otherPhase reports whether --phase excludes a kind. A kind without a phase counts as provisioning, which an image omits.
func (r *runner) otherPhase(phase pluginv1.Phase) bool {
	if phase == pluginv1.PhaseUnspecified {
		phase = pluginv1.PhaseProvisioning
	}
	return r.o.Phase != pluginv1.PhaseUnspecified && r.o.Phase != phase
}
