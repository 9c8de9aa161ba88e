package run

import (
	"context"
	"log/slog"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run/expand"
	"github.com/machineadm/machineadm/host/run/values"
	"github.com/machineadm/machineadm/host/state"
)

// runner is one run: its input and its results so far.
type runner struct {
	o        Options
	deps     Dependencies
	log      *slog.Logger
	claimKey []byte

	head     report.Report
	times    values.Times
	counted  string // the digest of the stream alone, for which reboots are counted
	docs     []values.Doc
	results  []values.Result // by index in docs
	problems values.Problems // of the run and of the stream
	requests []state.Request
	expander *expand.Expander
	all      []values.Planned // by index in docs, from the end of the first planning
	chosen   []values.Planned // documents whose providers are not saved yet

	changed   bool  // the machine was changed, or may have been
	recordErr error // the first failure of deps.Record
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
		return values.Interruption()
	default:
		return r.contextEnded(ctx.Err())
	}
}

// contextEnded returns the error for the error of the run's context, nil for nil.
func (r *runner) contextEnded(err error) error { return values.ContextEnded(err, r.o.Timeout) }

func (r *runner) emit(e Event) {
	e.Time = time.Now()
	r.deps.Observe(e)
}

// emitFor emits an event of a document.
func (r *runner) emitFor(d values.Doc, res values.Result, e Event) {
	folded := values.Fold(d, res)
	e.Document = &folded
	r.emit(e)
}

// warn adds warnings to the result of a document, and emits those that are new. The warnings of a plan in the first planning are in
// its document-planned.
func (r *runner) warn(d values.Doc, res values.Result, warnings ...pluginv1.Warning) values.Result {
	for _, w := range warnings {
		before := len(res.Warnings)
		if res = res.Warn(w); len(res.Warnings) > before {
			r.emitFor(d, res, Event{Type: EventWarning, Message: values.WarningText(w)})
		}
	}
	return res
}

// record saves the report. A run whose report cannot be saved must not change anything else.
func (r *runner) record() error {
	if r.deps.Record != nil && r.recordErr == nil {
		r.recordErr = r.deps.Record(r.report())
	}
	return values.StateError("", r.recordErr)
}

// report returns the report so far, and the raw output of other programs by the name in the errors.
func (r *runner) report() (report.Report, map[string]string) {
	return values.Report(r.head, r.times, r.requests, r.problems, r.docs, r.results)
}
