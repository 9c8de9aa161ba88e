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
	"github.com/machineadm/machineadm/host/run/values"
)

// outlook is what a plan takes into account beside the machine. The zero value is for a document that is planned alone.
type outlook struct {
	files []pluginv1.PlannedFile // what the plans of earlier documents leave
	list  bool                   // the plan lists its own for later documents
}

// leaving returns what the plans of documents leave of files, each path once.
func leaving(all []values.Planned) []pluginv1.PlannedFile {
	last := map[string]pluginv1.PlannedFile{}
	for _, p := range all {
		for _, f := range p.Plan.Files {
			last[f.Path] = f
		}
	}
	var out []pluginv1.PlannedFile
	for _, path := range slices.Sorted(maps.Keys(last)) {
		out = append(out, last[path])
	}
	return out
}

var errPlanTimeout = errors.New("the plan exceeded its limit")

// requestPlan calls Plan. The error is the plugin's, problems of the document, or an error of the run.
func (r *runner) requestPlan(ctx context.Context, d values.Doc, c *values.Candidate, o outlook) (pluginv1.Plan, error) {
	request, err := r.request(d, c)
	if err != nil {
		return pluginv1.Plan{}, err
	}
	request.ClaimKey = r.claimKey
	if c.Foresees() {
		request.Files, request.ListFiles = o.files, o.list
	}
	if r.all == nil { // otherwise it is a part of the turn of a document
		defer func(began time.Time) { r.times.Plans[d.ID] += time.Since(began) }(time.Now())
	}
	call, cancel := context.WithTimeoutCause(ctx, r.o.PlanTimeout, errPlanTimeout)
	defer cancel()
	plan, err := c.Plugin.Plan(call, request)
	if !values.Expired(err) {
		return plan, err
	}
	values.AwaitDeadline(call)
	switch {
	case errors.Is(context.Cause(call), errPlanTimeout):
		return pluginv1.Plan{}, d.WithLog(c, report.Error{
			Code: report.CodeDeadline, Message: fmt.Sprintf("plugin %s did not plan within %s", c.Binary, r.o.PlanTimeout),
		})
	case call.Err() != nil:
		return pluginv1.Plan{}, r.contextEnded(call.Err())
	default:
		return pluginv1.Plan{}, values.SelfCancelled(err)
	}
}

// request returns the arguments of Plan and Apply. Plan needs the state directory too: it may hold the only record of an
// activation that an earlier run did not finish.
func (r *runner) request(d values.Doc, c *values.Candidate) (pluginv1.Request, error) {
	request := pluginv1.Request{Document: d.Text, Root: r.o.Root, Target: r.o.Target}
	if r.deps.State == nil {
		return request, nil
	}
	var err error
	request.StateDir, err = r.deps.State.PluginDir(c.Binary, d.Kind, d.Name)
	return request, values.StateError("", err)
}
