package run

import (
	"context"
	"fmt"
	"slices"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// requestReboot makes a requested reboot durable. A request only ever gets sooner and surer in one boot: only a reboot ends it.
// An image has nothing to reboot.
func (r *runner) requestReboot(document string, when pluginv1.Reboot, asked bool) error {
	if when == pluginv1.RebootNone || r.with.Reboots == nil {
		return nil
	}
	all := slices.Clone(r.progress.requests)
	i := slices.IndexFunc(all, func(q Request) bool { return q.Document == document })
	if i < 0 {
		all, i = append(all, Request{Document: document}), len(all)
	}
	all[i].When, all[i].Asked = max(all[i].When, when), all[i].Asked || asked
	if slices.Equal(all, r.progress.requests) {
		return nil
	}
	return r.keepRequests(all)
}

func (r *runner) keepRequests(all []Request) error {
	if err := r.with.Reboots.Keep(all); err != nil {
		return &ending{stateProblem(fmt.Errorf("record a requested reboot: %w", err))}
	}
	r.progress.requests = all
	return nil
}

// settleRequests: a reboot that an earlier run planned with a change counts as asked once the document plans no change that
// needs it, because the change was made.
func (r *runner) settleRequests(p planned) error {
	for _, q := range r.progress.requests {
		if q.Document == p.label() && !q.Asked && !needsReboot(p.plan) {
			return r.requestReboot(q.Document, q.When, true)
		}
	}
	return nil
}

// dropRequests forgets the planned reboot of a document whose Apply has ended in order without beginning the change that
// needs it.
func (r *runner) dropRequests(p planned) error {
	all := slices.DeleteFunc(slices.Clone(r.progress.requests), func(q Request) bool {
		return q.Document == p.label() && !q.Asked && needsReboot(p.plan)
	})
	if len(all) == len(r.progress.requests) {
		return nil
	}
	return r.keepRequests(all)
}

func needsReboot(plan pluginv1.Plan) bool {
	return slices.ContainsFunc(plan.Changes, func(c pluginv1.Change) bool { return c.Reboot != pluginv1.RebootNone })
}

// asked says whether a document has asked for a reboot in this boot, at least so soon.
func (r *runner) asked(document string, when pluginv1.Reboot) bool {
	return slices.ContainsFunc(r.progress.requests, func(q Request) bool {
		return q.Document == document && q.Asked && q.When >= when
	})
}

// foreignReboot is a reboot that an earlier run asked for before its next document, where that document has no turn in
// this run. A planned one counts as well: the run that planned it did not live to say whether its change was begun.
func (r *runner) foreignReboot(all []planned) (Request, bool) {
	for _, q := range r.progress.requests {
		here := slices.ContainsFunc(all, func(p planned) bool { return p.label() == q.Document && !p.result.settled })
		if !here && q.When == pluginv1.RebootBeforeNext {
			return q, true
		}
	}
	return Request{}, false
}

// dueReboot is the reboot that is due once every document is done.
func (r *runner) dueReboot() (Request, bool) {
	for _, q := range r.progress.requests {
		here := slices.ContainsFunc(r.progress.docs, func(d doc) bool { return d.label() == q.Document })
		if q.Asked || !here {
			return q, true
		}
	}
	return Request{}, false
}

// rebootProblem ends a run that the machine must reboot for.
func (r *runner) rebootProblem(document, message string) error {
	hint := "reboot, then run the same command again"
	if r.o.Reboot {
		hint = "wait: the run continues after the reboot"
	}
	return &ending{one(report.Error{Code: report.CodeReboot, Document: document, Message: message, Hint: hint})}
}

// prepareReboot counts the reboot that is due and makes the next boot continue the run, both durably, before it happens:
// a stream that asks at every boot must not reboot for ever, and one that lies in /run would be lost.
func (r *runner) prepareReboot(ctx context.Context) error {
	if !r.o.Reboot {
		return nil
	}
	if r.with.Reboots != nil {
		n, err := r.with.Reboots.Count(r.progress.head.Generation)
		if err != nil {
			return stateProblem(fmt.Errorf("count the reboot: %w", err))
		}
		if n > MaxReboots {
			return one(report.Error{
				Code: report.CodeReboots, Message: fmt.Sprintf("the stream asks for reboot %d; at most %d are made", n, MaxReboots),
				Hint: "find in the report which change asks each time; a run that succeeds, also one without --reboot, starts the count again",
			})
		}
	}
	if r.with.Resume == nil {
		return nil
	}
	if err := r.with.Resume.Keep(ctx); err != nil {
		p := stateProblem(err)
		p[0].err.Hint = "see that the directory in the message is writable and not full, then run again; or run without --reboot, and reboot by hand"
		return p
	}
	return nil
}
