package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/catalog"
)

// planAll is the first planning: every document is planned before any is applied, so that an error of the
// configuration anywhere in the stream ends the run with nothing changed. Those errors go to bad.
func (r *run) planAll(ctx context.Context, bad *refusal) error {
	for _, it := range r.active() {
		if err := r.checkpoint(ctx); err != nil {
			return err
		}
		if err := r.planFirst(ctx, it); err != nil {
			if err := r.collect(it, err, bad); err != nil {
				return err
			}
		}
		if it.out.Outcome != "" {
			continue
		}
		it.noteWarnings(it.plan.Warnings)
		r.emit(Event{Type: EventDocumentPlanned, Document: it.out, Planned: it.plan.Changes, Pending: it.pending})
		if r.o.Mode == ModePlan {
			r.settlePlanned(it)
		}
	}
	return nil
}

// settlePlanned gives a document of a dry run the outcome that it would have.
func (r *run) settlePlanned(it *item) {
	live := 0
	for _, c := range it.plan.Changes {
		out := report.Change{ID: c.ID, Summary: c.Summary, Outcome: report.Changed}
		if r.o.Root != "" && c.NeedsLive {
			out.Outcome = report.Deferred
			live++
		}
		it.out.Changes = append(it.out.Changes, out)
	}
	switch {
	case it.pending != "":
		it.out.Outcome = "" // open: only its turn will tell
	case len(it.plan.Changes) == 0:
		it.out.Outcome = report.Unchanged
	case live == len(it.plan.Changes):
		it.out.Outcome, it.out.Reason = report.Deferred, report.ReasonLive
	default:
		it.out.Outcome = report.Changed
	}
}

// planFirst plans one document for the first time. InvalidConfig, and Unsupported by the last candidate, are a
// refusal; what the machine is not ready for yet is kept as pending.
func (r *run) planFirst(ctx context.Context, it *item) error {
	if it.plugin == nil {
		return r.choose(ctx, it)
	}
	if r.deferredByPhase(it) {
		return nil
	}
	plan, err := r.plan(ctx, it)
	return r.judgeFirst(it, plan, err)
}

// deferredByPhase settles a document that --phase does not pick.
func (r *run) deferredByPhase(it *item) bool {
	phase := it.kind.Phase
	if phase == pluginv1.PhaseUnspecified {
		phase = pluginv1.PhaseProvisioning // the careful reading: not into an image
	}
	if r.o.Phase == pluginv1.PhaseUnspecified || r.o.Phase == phase {
		return false
	}
	it.out.Outcome, it.out.Reason = report.Deferred, report.ReasonPhase
	return true
}

func (r *run) judgeFirst(it *item, plan pluginv1.Plan, err error) error {
	if err == nil {
		it.plan, it.fresh = plan, true
		return nil
	}
	var f *failure
	if errors.As(err, &f) || expired(err) || errors.Is(err, errPlanOverdue) || errors.Is(err, pluginv1.ErrCrashed) {
		return r.judge(it, err)
	}
	e := pluginv1.AsError(err)
	switch e.Code {
	case pluginv1.CodeInvalidConfig:
		return r.invalid(it, e)
	case pluginv1.CodeUnsupported:
		if r.elsewhere(e) {
			return nil
		}
		refused := it.failure(r.o.File, err).err
		refused.Document = label(it.doc.Kind, it.doc.Name)
		return &refusal{errors: []report.Error{refused}}
	case pluginv1.CodePrecondition, pluginv1.CodeRetry:
		it.pending = firstOf(e.Message, "the machine is not ready")
		if e.Hint != "" {
			it.pending += "; " + e.Hint
		}
		return nil
	default:
		return r.judge(it, err)
	}
}

// elsewhere: no field is at fault, but this machine, on which a stream that is only validated need not be for.
func (r *run) elsewhere(e *pluginv1.Error) bool {
	return r.o.Mode == ModeValidate && e.Code == pluginv1.CodeUnsupported && len(e.Violations) == 0
}

// invalid is everything that a plugin finds wrong with a document.
func (r *run) invalid(it *item, e *pluginv1.Error) *refusal {
	out := &refusal{}
	for _, v := range e.Violations[:min(len(e.Violations), document.MaxErrors)] {
		out.add(it.locate(r.o.File, v))
	}
	if len(e.Violations) > document.MaxErrors {
		out.add(it.locate(r.o.File, document.Violation{
			Message: "has more errors than are listed", Hint: "mend those that are listed first",
		}))
	}
	if len(out.errors) == 0 { // a plugin that names no field is still taken at its word
		out.errors = append(out.errors, it.located(r.o.File, report.Error{
			Code: e.Code.String(), Message: e.Message, Hint: e.Hint, Document: label(it.doc.Kind, it.doc.Name),
		}, ""))
	}
	return out
}

// judge turns what a plugin answered, or the end of the run's own context, into the end of the run.
func (r *run) judge(it *item, err error) error {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, errPlanOverdue):
		return &failure{exit: report.ExitDeadline, detail: it.stderr(), err: it.located(r.o.File, report.Error{
			Code: report.CodeDeadline, Message: fmt.Sprintf("plugin %s did not plan within %s", it.binary, r.o.PlanTimeout),
			Hint: "read the plugin's last words in details.json; running again is safe",
		}, "")}
	case expired(err):
		return r.overdue(err)
	}
	if e := pluginv1.AsError(err); e.Code == pluginv1.CodeInvalidConfig { // the document's own error is the first of them
		r.report.Errors = append(r.report.Errors, r.invalid(it, e).errors[1:]...)
	}
	return it.failure(r.o.File, err)
}

// choose tries the installed providers of a document that names none: the active one, else the installed one; one
// that cannot express a field makes way for the next.
func (r *run) choose(ctx context.Context, it *item) error {
	ranked, refusals, err := r.candidates(ctx, it)
	if err != nil {
		return err
	}
	var wrong *refusal // validate alone: the configuration is wrong only if every provider says so
	for _, group := range ranked {
		if len(group) > 1 && r.o.Mode != ModeValidate {
			return r.tie(it, group)
		}
		for _, p := range group {
			refused, err := r.try(ctx, it, p)
			var invalid *refusal
			if r.o.Mode == ModeValidate && errors.As(err, &invalid) {
				if wrong == nil {
					wrong = invalid
				}
				continue
			}
			if err != nil || refused == "" {
				return err
			}
			refusals = append(refusals, refused)
		}
	}
	if wrong != nil {
		return wrong
	}
	it.detach()
	return &refusal{errors: []report.Error{it.located(r.o.File, report.Error{
		Code: pluginv1.CodeUnsupported.String(), Document: label(it.doc.Kind, it.doc.Name),
		Message: "no installed provider can do this: " + strings.Join(refusals, "; "),
		Hint:    "install a provider that can, or change what they refuse",
	}, "")}}
}

func (r *run) tie(it *item, group []catalog.Plugin) error {
	var names []string
	for _, p := range group {
		names = append(names, p.Binary)
	}
	it.detach()
	return &failure{exit: report.ExitPrecondition, err: it.located(r.o.File, report.Error{
		Code:    pluginv1.CodePrecondition.String(),
		Message: "several providers fit equally well: " + strings.Join(names, " and "),
		Hint:    "name one in spec.provider, or in /etc/machineadm/defaults.yaml for every stream of this machine",
	}, "spec.provider")}
}

// try plans a document with one candidate. A refusal to express it comes back as text.
func (r *run) try(ctx context.Context, it *item, p catalog.Plugin) (refused string, err error) {
	if err := r.attach(ctx, it, p); err != nil {
		return "", err
	}
	if r.deferredByPhase(it) {
		return "", nil
	}
	plan, err := r.plan(ctx, it)
	if e := pluginv1.AsError(err); e != nil && e.Code == pluginv1.CodeUnsupported && !r.elsewhere(e) {
		return it.providerOf(p) + ": " + firstOf(e.Message, e.Error()), nil
	}
	return "", r.judgeFirst(it, plan, err)
}

var errPlanOverdue = errors.New("the planning took too long")

// plan asks the plugin of a document for its plan. The error is what the plugin answered, errPlanOverdue, or the end of
// ctx.
func (r *run) plan(ctx context.Context, it *item) (pluginv1.Plan, error) {
	request, err := r.request(it)
	if err != nil {
		return pluginv1.Plan{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.o.PlanTimeout, errPlanOverdue)
	defer cancel()
	plan, err := it.plugin.Plan(ctx, request)
	if !expired(err) {
		return plan, err
	}
	// gRPC tells the plugin the deadline too: its answer can come a moment before our own timer.
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < time.Second {
		<-ctx.Done()
	}
	switch {
	case errors.Is(context.Cause(ctx), errPlanOverdue):
		return pluginv1.Plan{}, errPlanOverdue
	case ctx.Err() != nil:
		return pluginv1.Plan{}, ctx.Err()
	default:
		return pluginv1.Plan{}, unprompted(err)
	}
}

// request is what a plugin is asked with, its memory included: a restart that an earlier run did not live to make is
// known from nowhere else.
func (r *run) request(it *item) (pluginv1.Request, error) {
	request := pluginv1.Request{Document: it.json, Root: r.o.Root, Target: r.o.Target}
	if r.with.State == nil {
		return request, nil
	}
	var err error
	if request.StateDir, err = r.with.State.PluginDir(it.binary, it.doc.Kind, it.doc.Name); err != nil {
		return request, stateFailure(err)
	}
	return request, nil
}

func (it *item) noteWarnings(warnings []pluginv1.Warning) {
	for _, w := range warnings {
		text := w.Message
		if w.Field != "" {
			text = w.Field + ": " + w.Message
		}
		it.noteWarning(text)
	}
}

// noteWarning keeps a warning once: Plan and Apply both tell it.
func (it *item) noteWarning(text string) bool {
	for _, known := range it.out.Warnings {
		if known == text {
			return false
		}
	}
	it.out.Warnings = append(it.out.Warnings, text)
	return true
}
