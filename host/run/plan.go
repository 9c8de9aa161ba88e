package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// planned is a document with its plan, or with the reason why its turn must decide.
type planned struct {
	doc
	by      *candidate // nil when none was chosen
	plan    pluginv1.Plan
	pending *pluginv1.Error // Precondition or Retry
	result  result          // settled when the document is not applied
}

// planAll plans every document before any is applied, so that an error anywhere in the stream ends the run with nothing
// changed. An error ends the run at once.
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
		if r.certain(p, out) {
			p.result = failed(p.fromPlugin(p.by, p.pending)).with(p)
			p.plan.Claims, p.pending = p.pending.Claims, nil
		}
		out = append(out, p)
		if !p.result.settled {
			r.announce(p)
		}
	}
	for place, wrong := range conflicts(out) {
		out[place].result = failed(append(out[place].result.problems, wrong...)).with(out[place])
	}
	return out, nil
}

// announce reports a plan to the observer, within the budget of a document.
func (r *runner) announce(p planned) {
	shown, omitted := withinBudget(p.plan.Changes)
	d := fold(p.doc, p.preview(r.o.Root != ""))
	if omitted > 0 {
		d.Warnings = append(d.Warnings, fmt.Sprintf("%d changes or diffs are too large to be shown", omitted))
	}
	pending := ""
	if p.pending != nil {
		pending = firstOf(p.pending.Message, violationsOf(p.pending), "the machine is not ready")
		if hint := hintOf(p.pending); hint != "" {
			pending += "; " + hint
		}
	}
	r.log.Info("document planned", "document", p.label(), "provider", d.Provider, "changes", len(p.plan.Changes), "pending", pending != "")
	r.emit(Event{Type: EventDocumentPlanned, Document: &d, Planned: shown, Pending: pending})
}

func violationsOf(e *pluginv1.Error) string {
	var texts []string
	for _, v := range e.Violations {
		texts = append(texts, firstOf(v.Field+": ", "")+v.Message)
	}
	return strings.Join(texts, "; ")
}

func hintOf(e *pluginv1.Error) string {
	if e.Hint == "" && len(e.Violations) > 0 {
		return e.Violations[0].Hint
	}
	return e.Hint
}

// certain says whether a Precondition of the first planning cannot be cured by the time of the document's turn: the plugin
// says so, or no earlier document changes anything before it.
func (r *runner) certain(p planned, earlier []planned) bool {
	if r.o.Mode == ModeValidate || p.pending == nil || p.pending.Code != pluginv1.CodePrecondition {
		return false
	}
	return p.pending.Final || !slices.ContainsFunc(earlier, func(e planned) bool {
		return e.pending != nil || e.result.outcome == report.Failed || live(e.plan.Changes, r.o.Root != "") < len(e.plan.Changes)
	})
}

// live counts the changes that an image leaves for first boot.
func live(changes []pluginv1.Change, image bool) int {
	n := 0
	for _, c := range changes {
		if image && c.NeedsLive {
			n++
		}
	}
	return n
}

// preview is the result that a document has when it is applied now and nothing goes wrong.
func (p planned) preview(image bool) result {
	out := p.result
	out.by = p.by
	for _, w := range p.plan.Warnings {
		out = out.warn(warningText(w))
	}
	for _, c := range p.plan.Changes {
		outcome := report.Changed
		if image && c.NeedsLive {
			outcome = report.Deferred
		}
		out = out.add(report.Change{ID: c.ID, Summary: c.Summary, Outcome: outcome})
	}
	return out
}

// outcome is the outcome of a document in a plan.
func (p planned) outcome(image bool) result {
	out := p.preview(image)
	switch left := live(p.plan.Changes, image); {
	case out.settled || p.pending != nil:
	case len(p.plan.Changes) == 0:
		out.settled, out.outcome = true, report.Unchanged
	case left > 0:
		out.settled, out.outcome, out.reason = true, report.Deferred, report.ReasonLive
	default:
		out.settled, out.outcome = true, report.Changed
	}
	return out
}

// planFirst plans one document for the first time, with the best candidate that can express it. An error ends the run.
func (r *runner) planFirst(ctx context.Context, b bound) (planned, error) {
	out := planned{doc: b.doc, result: b.result, by: b.result.by}
	if b.result.settled {
		return out, nil
	}
	refusals := b.refusals
	var wrong *planned // validate alone: the configuration is wrong only if every provider says so
	for _, rank := range b.ranks {
		if len(rank) > 1 && r.o.Mode != ModeValidate {
			out.result = failed(problems{{err: b.at("spec.provider", tie(rank))}})
			return out, nil
		}
		for _, c := range rank {
			tried, refused, err := r.try(ctx, b, c)
			switch {
			case err != nil:
				return out, err
			case refused != "":
				refusals = append(refusals, refused)
			case r.o.Mode == ModeValidate && b.provider == "" && tried.result.settled && tried.result.outcome == report.Failed:
				if wrong == nil {
					wrong = &tried
				}
			default:
				return tried, nil
			}
		}
	}
	if wrong != nil {
		return *wrong, nil
	}
	out.result = failed(problems{{err: b.at("", report.Error{
		Code: pluginv1.CodeUnsupported.String(), Message: "no installed provider can do this: " + strings.Join(refusals, "; "),
		Hint: "install a provider that can, or change what they refuse",
	})}})
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

// try plans a document with one candidate. refused is why the next candidate has its turn.
func (r *runner) try(ctx context.Context, b bound, c *candidate) (out planned, refused string, err error) {
	out = planned{doc: b.doc, by: c}
	if r.deferred(c.kind.Phase) {
		out.result = settled(report.Deferred, report.ReasonPhase)
		out.result.by = c
		return out, "", nil
	}
	out.plan, err = r.ask(ctx, b.doc, c)
	var end *ending
	var own problems
	switch {
	case err == nil:
		return out, "", nil
	case errors.As(err, &end):
		return out, "", err
	case errors.As(err, &own):
		out.result = failed(own).with(out)
		return out, "", nil
	}
	e := pluginv1.AsError(err)
	crashed := errors.Is(err, pluginv1.ErrCrashed)
	switch {
	case !crashed && e.Code == pluginv1.CodeUnsupported && r.elsewhere(e):
		out.pending = e
	case !crashed && e.Code == pluginv1.CodeUnsupported && b.provider == "":
		return out, c.provider + ": " + firstOf(e.Message, violationsOf(e), e.Error()), nil
	case !crashed && (e.Code == pluginv1.CodePrecondition || e.Code == pluginv1.CodeRetry):
		out.pending = e
	default:
		out.result = failed(b.fromPlugin(c, err)).with(out)
	}
	return out, "", nil
}

// elsewhere: Unsupported because of the platform; validate ignores it.
func (r *runner) elsewhere(e *pluginv1.Error) bool {
	return r.o.Mode == ModeValidate && len(e.Violations) == 0
}

// deferred says whether --phase leaves a kind out. A kind without a phase needs a machine's identity: the careful reading.
func (r *runner) deferred(phase pluginv1.Phase) bool {
	if phase == pluginv1.PhaseUnspecified {
		phase = pluginv1.PhaseProvisioning
	}
	return r.o.Phase != pluginv1.PhaseUnspecified && r.o.Phase != phase
}

var errPlanOverdue = errors.New("the planning took too long")

// ask asks a plugin for its plan. The error is what the plugin answered, problems of the document, or an *ending.
func (r *runner) ask(ctx context.Context, d doc, c *candidate) (pluginv1.Plan, error) {
	request, err := r.request(d, c)
	if err != nil {
		return pluginv1.Plan{}, err
	}
	request.ClaimKey = r.claimKey
	call, cancel := context.WithTimeoutCause(ctx, r.o.PlanTimeout, errPlanOverdue)
	defer cancel()
	plan, err := c.plugin.Plan(call, request)
	if !expired(err) {
		return plan, err
	}
	// gRPC sends the deadline to the plugin too: its answer can come a moment before our own timer.
	if deadline, ok := call.Deadline(); ok && time.Until(deadline) < time.Second {
		<-call.Done()
	}
	switch {
	case errors.Is(context.Cause(call), errPlanOverdue):
		out := report.Error{
			Code: report.CodeDeadline, Message: fmt.Sprintf("plugin %s did not plan within %s", c.binary, r.o.PlanTimeout),
			Hint: "running again is safe",
		}
		detail := c.stderr()
		if detail != "" {
			out.Hint = "read the end of the plugin's log in details.json; running again is safe"
		}
		return pluginv1.Plan{}, problems{{err: d.at("", out), detail: detail}}
	case call.Err() != nil:
		return pluginv1.Plan{}, r.overdue(call.Err())
	default:
		return pluginv1.Plan{}, unprompted(err)
	}
}

// request is what a plugin is asked with. Its state directory goes along: a restart that an earlier run did not live to
// make is recorded nowhere else.
func (r *runner) request(d doc, c *candidate) (pluginv1.Request, error) {
	request := pluginv1.Request{Document: d.json, Root: r.o.Root, Target: r.o.Target}
	if r.with.State == nil {
		return request, nil
	}
	var err error
	if request.StateDir, err = r.with.State.PluginDir(c.binary, d.Kind, d.Name); err != nil {
		return request, &ending{stateProblem(err)}
	}
	return request, nil
}

func warningText(w pluginv1.Warning) string {
	if w.Field == "" {
		return w.Message
	}
	return w.Field + ": " + w.Message
}
