package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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
		p, err := r.planFirst(ctx, b)
		if err != nil {
			return out, err
		}
		if r.isFinal(p, out) {
			p.result = p.result.fail(p.fromPlugin(p.result.by, p.pending))
			p.plan.Claims, p.pending = p.pending.Claims, nil
		}
		out = append(out, p)
		if !p.result.settled {
			r.announce(p)
		}
	}
	conflicting := conflicts(out)
	for i, p := range out {
		if wrong := conflicting[p.index]; len(wrong) > 0 {
			out[i].result = p.result.warn(p.plan.Warnings...).fail(append(p.result.problems, wrong...))
		}
	}
	return out, nil
}

// announce emits a plan, within the budget of a document.
func (r *runner) announce(p planned) {
	shown, omitted := withinBudget(p.plan.Changes)
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

// isFinal reports whether the document's turn cannot satisfy its Precondition: the plugin says so, or no earlier document
// changes anything before it.
func (r *runner) isFinal(p planned, earlier []planned) bool {
	if r.o.Mode == ModeValidate || p.pending == nil || p.pending.Code != pluginv1.CodePrecondition {
		return false
	}
	return p.pending.Final || !slices.ContainsFunc(earlier, func(e planned) bool {
		return e.pending != nil || e.result.outcome == report.Failed || e.deferred(r.image()) < len(e.plan.Changes)
	})
}

// planFirst plans one document for the first time, with the best candidate that supports it. An error ends the run.
func (r *runner) planFirst(ctx context.Context, b bound) (planned, error) {
	out := planned{doc: b.doc, result: b.result}
	if b.source != nil {
		out.pending = b.source.pending
	}
	if b.result.settled || b.source != nil {
		return out, nil
	}
	refusals := b.refusals
	var invalid *planned // in ModeValidate an open document is invalid only if every candidate refuses it
	for _, rank := range b.ranks {
		if len(rank) > 1 && r.o.Mode != ModeValidate {
			out.result = failed(b.problem("spec.provider", tie(rank)))
			return out, nil
		}
		for _, c := range rank {
			p, refused, err := r.try(ctx, b, c)
			switch {
			case err != nil:
				return out, err
			case refused != "":
				refusals = append(refusals, refused)
			case r.o.Mode != ModeValidate || b.provider != "" || p.result.outcome != report.Failed:
				return p, nil
			case invalid == nil:
				invalid = &p
			}
		}
	}
	if invalid != nil {
		return *invalid, nil
	}
	out.result = failed(b.problem("", report.Error{
		Code: pluginv1.CodeUnsupported.String(), Message: "no installed provider can do this: " + strings.Join(refusals, "; "),
		Hint: cmp.Or(b.apiVersionHint(), "install a provider that can, or change what they refuse"),
	}))
	return out, nil
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
func (r *runner) try(ctx context.Context, b bound, c *candidate) (out planned, refused string, err error) {
	out = planned{doc: b.doc, result: result{by: c}}
	if r.otherPhase(c.kind.Phase) {
		out.result = out.result.end(report.Deferred, report.ReasonPhase)
		return out, "", nil
	}
	out.plan, err = r.requestPlan(ctx, b.doc, c)
	var end *runError
	var own problems
	switch {
	case err == nil || errors.As(err, &end):
		return out, "", err
	case errors.As(err, &own):
		out.result = out.result.fail(own)
		return out, "", nil
	}
	e := pluginv1.AsError(err)
	switch {
	case errors.Is(err, pluginv1.ErrCrashed):
	case e.Code == pluginv1.CodePrecondition, e.Code == pluginv1.CodeRetry,
		// Unsupported because of the platform; validate ignores it.
		e.Code == pluginv1.CodeUnsupported && r.o.Mode == ModeValidate && len(e.Violations) == 0:
		out.pending = e
		return out, "", nil
	case e.Code == pluginv1.CodeUnsupported && b.provider == "":
		return out, c.provider + ": " + cmp.Or(refusalText(e), e.Error()), nil
	}
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

var errPlanTimeout = errors.New("the plan exceeded its limit")

// requestPlan calls Plan. The error is the plugin's, problems of the document, or a *runError.
func (r *runner) requestPlan(ctx context.Context, d doc, c *candidate) (pluginv1.Plan, error) {
	request, err := r.request(d, c)
	if err != nil {
		return pluginv1.Plan{}, err
	}
	request.ClaimKey = r.claimKey
	call, cancel := context.WithTimeoutCause(ctx, r.o.PlanTimeout, errPlanTimeout)
	defer cancel()
	plan, err := c.plugin.Plan(call, request)
	if !expired(err) {
		return plan, err
	}
	awaitDeadline(call)
	switch {
	case errors.Is(context.Cause(call), errPlanTimeout):
		return pluginv1.Plan{}, d.withLog(c, report.Error{
			Code: report.CodeDeadline, Message: fmt.Sprintf("plugin %s did not plan within %s", c.binary, r.o.PlanTimeout),
		})
	case call.Err() != nil:
		return pluginv1.Plan{}, r.contextEnded(call.Err())
	default:
		return pluginv1.Plan{}, selfCancelled(err)
	}
}

// awaitDeadline waits for the end of the context of a call that ended as too late: gRPC sends the deadline to the plugin, whose answer
// can arrive just before the timer of the context fires.
func awaitDeadline(call context.Context) {
	if deadline, ok := call.Deadline(); ok && time.Until(deadline) < time.Second {
		<-call.Done()
	}
}

// request returns the arguments of Plan and Apply. Plan needs the state directory too: it may hold the only record of an
// activation that an earlier run did not finish.
func (r *runner) request(d doc, c *candidate) (pluginv1.Request, error) {
	request := pluginv1.Request{Document: d.json, Root: r.o.Root, Target: r.o.Target}
	if r.deps.State == nil {
		return request, nil
	}
	var err error
	request.StateDir, err = r.deps.State.PluginDir(c.binary, d.Kind, d.Name)
	return request, stateError("", err)
}
