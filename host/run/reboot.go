package run

import (
	"context"
	"fmt"
	"slices"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run/values"
	"github.com/machineadm/machineadm/host/state"
)

// requestReboot saves a requested reboot. Within one boot a request becomes only sooner and more certain, because only a
// reboot ends it. An image has nothing to reboot.
func (r *runner) requestReboot(document string, when pluginv1.Reboot, asked bool) error {
	if when == pluginv1.RebootNone || r.deps.Reboots == nil {
		return nil
	}
	all := slices.Clone(r.requests)
	i := slices.IndexFunc(all, func(q state.Request) bool { return q.Document == document })
	if i < 0 {
		all, i = append(all, state.Request{Document: document}), len(all)
	}
	all[i].When, all[i].Asked = max(all[i].When, when), all[i].Asked || asked
	return r.keepRequests(all)
}

func (r *runner) keepRequests(all []state.Request) error {
	if slices.Equal(all, r.requests) {
		return nil
	}
	if err := r.deps.Reboots.Keep(all); err != nil {
		return values.StateError("record a requested reboot", err)
	}
	r.requests = all
	return nil
}

// confirmRequests marks the planned reboot of an earlier run as asked for if the document no longer plans the change that
// needs it: the change was made.
func (r *runner) confirmRequests(p values.Planned) error {
	for _, q := range r.requests {
		if q.Document == p.Label() && !q.Asked && !p.NeedsReboot() {
			return r.requestReboot(q.Document, q.When, true)
		}
	}
	return nil
}

// dropRequests removes the planned reboot of a document whose Apply ended in order and did not start the change that needs
// it.
func (r *runner) dropRequests(p values.Planned) error {
	return r.keepRequests(slices.DeleteFunc(slices.Clone(r.requests), func(q state.Request) bool {
		return q.Document == p.Label() && !q.Asked && p.NeedsReboot()
	}))
}

// askedBeforeNext reports whether a document asked for a reboot before the next document.
func (r *runner) askedBeforeNext(d values.Doc) bool {
	return slices.Contains(r.requests, state.Request{Document: d.Label(), When: pluginv1.RebootBeforeNext, Asked: true})
}

// earlierReboot returns a BeforeNext reboot of an earlier run whose document has no turn in this run. A planned one counts:
// whether its change was started is unknown.
func (r *runner) earlierReboot(all []values.Planned) (state.Request, bool) {
	for _, q := range r.requests {
		hasTurn := slices.ContainsFunc(all, func(p values.Planned) bool { return p.Label() == q.Document && !p.Result.Settled })
		if !hasTurn && q.When == pluginv1.RebootBeforeNext {
			return q, true
		}
	}
	return state.Request{}, false
}

// dueReboot returns the reboot that is due after the last document.
func (r *runner) dueReboot() (state.Request, bool) {
	for _, q := range r.requests {
		if q.Asked || !slices.ContainsFunc(r.docs, func(d values.Doc) bool { return d.Label() == q.Document }) {
			return q, true
		}
	}
	return state.Request{}, false
}

// rebootRequired returns the error of a run that ends for a reboot.
func (r *runner) rebootRequired(document, message string) error {
	hint := "reboot, then run the same command again"
	if r.o.Reboot {
		hint = "wait: the run continues after the reboot"
	}
	return values.OfRun(report.Error{Code: report.CodeReboot, Document: document, Message: message, Hint: hint})
}

// prepareReboot counts the reboot and saves the run for the next boot, before the caller reboots: a stream that asks at
// every boot must not reboot forever, and a stream in /run would be lost.
func (r *runner) prepareReboot(ctx context.Context) error {
	if !r.o.Reboot {
		return nil
	}
	if r.deps.Reboots != nil {
		n, err := r.deps.Reboots.Count(r.counted)
		if err != nil {
			return values.StateError("count the reboot", err)
		}
		if n > MaxReboots {
			return values.OfRun(report.Error{
				Code: report.CodeReboots, Message: fmt.Sprintf("the stream asks for reboot %d; at most %d are made", n, MaxReboots),
				Hint: "find in the report which change asks each time; a run that succeeds, also one without --reboot, resets the count",
			})
		}
	}
	if r.deps.Resume == nil {
		return nil
	}
	if err := r.deps.Resume.Keep(ctx); err != nil {
		return values.NewStateError(err, "see that the directory in the message is writable and not full, then run again; or run without --reboot, and reboot by hand")
	}
	return nil
}
