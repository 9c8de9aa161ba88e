package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// outlook is what a plan takes into account beside the machine. The zero value is for a document that is planned alone.
type outlook struct {
	files []pluginv1.PlannedFile // what the plans of earlier documents leave
	list  bool                   // the plan lists its own for later documents
}

// leaving returns what the plans of documents leave of files, each path once.
func leaving(all []planned) []pluginv1.PlannedFile {
	last := map[string]pluginv1.PlannedFile{}
	for _, p := range all {
		for _, f := range p.plan.Files {
			last[f.Path] = f
		}
	}
	var out []pluginv1.PlannedFile
	for _, path := range slices.Sorted(maps.Keys(last)) {
		out = append(out, last[path])
	}
	return out
}

// foresees reports whether the plugin of a document plans with the files of earlier documents.
func (c *candidate) foresees() bool {
	return c != nil && slices.Contains(c.plugin.Description.Capabilities, pluginv1.CapabilityFiles)
}

var errPlanTimeout = errors.New("the plan exceeded its limit")

// requestPlan calls Plan. The error is the plugin's, problems of the document, or an error of the run.
func (r *runner) requestPlan(ctx context.Context, d doc, c *candidate, o outlook) (pluginv1.Plan, error) {
	request, err := r.request(d, c)
	if err != nil {
		return pluginv1.Plan{}, err
	}
	request.ClaimKey = r.claimKey
	if c.foresees() {
		request.Files, request.ListFiles = o.files, o.list
	}
	if r.all == nil { // otherwise it is a part of the turn of a document
		defer func(began time.Time) { r.times.plans[d.id] += time.Since(began) }(time.Now())
	}
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
