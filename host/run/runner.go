package run

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/envelope"
	"github.com/machineadm/machineadm/host/state"
)

// runner is one run: its input and its results so far.
type runner struct {
	o        Options
	deps     Dependencies
	log      *slog.Logger
	claimKey []byte

	head     report.Report
	times    times
	counted  string // the digest of the stream alone, for which reboots are counted
	docs     []doc
	results  []result // by index in docs
	problems problems // of the run and of the stream
	requests []state.Request
	expander *expander
	all      []planned // by index in docs, from the end of the first planning
	chosen   []planned // documents whose providers are not saved yet

	changed   bool  // the machine was changed, or may have been
	recordErr error // the first failure of deps.Record
}

// expander resolves the references of a run. Its limits hold for all of them together.
type expander struct {
	*runner
	chains  map[string]string // of every document, by KIND/NAME
	keys    []string          // of what this run resolves, also if it cannot yet
	fetches int
	bytes   int64
	opener  *envelope.Opener
	sums    map[string][sha256.Size]byte // the digests of all that was resolved, by the ID of the document
}

// image reports whether the run writes into an image.
func (r *runner) image() bool { return r.o.Root != "" }

// untilInterrupted returns a context for work that changes nothing: an interruption cancels it at once.
func (r *runner) untilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-r.o.Interrupt:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// checkpoint returns an error of the run if the run was interrupted or exceeded its limit.
func (r *runner) checkpoint(ctx context.Context) error {
	select {
	case <-r.o.Interrupt:
		return interruption()
	default:
		return r.contextEnded(ctx.Err())
	}
}

// contextEnded returns the error for the error of the run's context, nil for nil.
func (r *runner) contextEnded(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return ofRun(report.Error{
			Code: report.CodeDeadline, Message: fmt.Sprintf("the run took longer than its %s", r.o.Timeout),
			Hint: "run it again, with a longer --timeout if it needs one",
		})
	default:
		return interruption()
	}
}

func (r *runner) emit(e Event) {
	e.Time = time.Now()
	r.deps.Observe(e)
}

// emitFor emits an event of a document.
func (r *runner) emitFor(d doc, res result, e Event) {
	folded := fold(d, res)
	e.Document = &folded
	r.emit(e)
}

// warn adds warnings to the result of a document, and emits those that are new. The warnings of a plan in the first planning are in
// its document-planned.
func (r *runner) warn(d doc, res result, warnings ...pluginv1.Warning) result {
	for _, w := range warnings {
		before := len(res.warnings)
		if res = res.warn(w); len(res.warnings) > before {
			r.emitFor(d, res, Event{Type: EventWarning, Message: warningText(w)})
		}
	}
	return res
}

// record saves the report. A run whose report cannot be saved must not change anything else.
func (r *runner) record() error {
	if r.deps.Record != nil && r.recordErr == nil {
		r.recordErr = r.deps.Record(r.report())
	}
	return stateError("", r.recordErr)
}

// report returns the report so far, and the raw output of other programs by the name in the errors.
func (r *runner) report() (report.Report, map[string]string) {
	out, details := r.head, map[string]string{}
	out.Errors, out.Documents, out.Reboots, out.Stages = nil, []report.Document{}, nil, r.times.report()
	for _, q := range r.requests {
		if q.Asked {
			out.Reboots = append(out.Reboots, report.Reboot{Document: q.Document, When: q.When.String()})
		}
	}
	size, omitted := 0, 0
	add := func(x problem, name string) bool {
		size += len(x.err.Message) + len(x.err.Hint) + len(x.err.Field)
		if size > reportBudget {
			omitted++
			return false
		}
		if x.detail != "" {
			x.err.Details = name
			details[name] = x.detail
		}
		out.Errors = append(out.Errors, x.err)
		return true
	}
	for _, x := range r.problems {
		add(x, "run")
	}
	for i, d := range r.docs {
		res := r.results[i]
		if size += res.size; size > reportBudget {
			size -= res.size
			res.omitted += len(res.changes) + len(res.warnings) + len(res.waits)
			res.changes, res.warnings, res.waits = nil, nil, nil
		}
		folded := fold(d, res)
		folded.PlanMs = r.times.plans[d.id].Milliseconds()
		for _, x := range res.problems {
			if add(x, "document-"+d.id) {
				folded.Errors = append(folded.Errors, len(out.Errors)-1)
			}
		}
		out.Documents = append(out.Documents, folded)
	}
	sortErrors(&out)
	if omitted > 0 {
		out.Errors = append(out.Errors, report.Error{
			Code: out.Errors[0].Code, Message: fmt.Sprintf("%d more errors are left out of the report", omitted),
			Hint: "correct those that are listed first",
		})
	}
	return out, details
}

// fold returns a document's part of the report, without its errors.
func fold(d doc, res result) report.Document {
	out := report.Document{
		Index: d.Index, ID: d.id, APIVersion: d.APIVersion, Kind: d.Kind, Name: d.Name, Provider: d.Provider,
		Outcome: res.outcome, Reason: res.reason, Changes: res.changes, Warnings: res.warnings, Omitted: res.omitted,
		DurationMs: res.took.Milliseconds(), StartedAt: res.began, Waits: res.waits,
	}
	if res.by != nil {
		out.Provider = res.by.provider
		out.Plugin = &report.Plugin{
			Path: res.by.plugin.Path, Version: res.by.plugin.Description.Version, SHA256: res.by.plugin.SHA256,
		}
	}
	return out
}
