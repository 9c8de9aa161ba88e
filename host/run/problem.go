package run

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/launch"
)

// problem is one error of the report with the raw output of other programs that belongs to it.
type problem struct {
	err    report.Error
	detail string // for details.json
	id     string // of the document; empty for an error of the run: an interruption, a deadline, a failed state store, or a reboot
}

// problems are the errors of documents or of the run, as an error. The first one decides the exit code.
type problems []problem

// Error returns the number of errors.
func (p problems) Error() string { return fmt.Sprintf("%d errors", len(p)) }

// orNil returns p as an error, nil if it is empty.
func (p problems) orNil() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// precedence orders errors of several documents: the first code of this list that occurs decides the exit code. Errors of
// the stream precede the problems of the machine.
var precedence = []string{ //nolint:gochecknoglobals // a constant table
	report.CodeInterrupted, report.CodeState, pluginv1.CodeInvalidConfig.String(), report.CodeConflict, report.CodeUsage,
	report.CodeUntrusted, pluginv1.CodeInternal.String(), report.CodeCrashed, report.CodeDeadline,
	pluginv1.CodeRetry.String(), report.CodeNoPlugin, pluginv1.CodeUnsupported.String(), pluginv1.CodePrecondition.String(),
}

// sorted returns p in the order of errors.
func (p problems) sorted() problems {
	out := slices.Clone(p)
	slices.SortStableFunc(out, func(a, b problem) int { return compare(a.err, b.err) })
	return out
}

// compare orders errors by precedence, then by position in the stream.
func compare(a, b report.Error) int {
	rank := func(e report.Error) int { return slices.Index(precedence, e.Code) }
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}

// sortErrors sorts the errors of a report, and changes the numbers by which its documents refer to them.
func sortErrors(r *report.Report) {
	if len(r.Errors) < 2 {
		return
	}
	order := make([]int, len(r.Errors))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compare(r.Errors[a], r.Errors[b]) })
	sorted, position := make([]report.Error, len(order)), make([]int, len(order))
	for to, from := range order {
		sorted[to], position[from] = r.Errors[from], to
	}
	r.Errors = sorted
	for _, d := range r.Documents {
		for i, from := range d.Errors {
			d.Errors[i] = position[from]
		}
		slices.Sort(d.Errors)
	}
}

// ofRun returns an error of the run.
func ofRun(e report.Error) problems { return problems{{err: e}} }

// endsRun reports whether err is of the run, and not of a document or plugin.
func endsRun(err error) bool {
	p, ok := errors.AsType[problems](err)
	return ok && p[0].id == ""
}

// stateError returns an error of the state store as an error of the run, nil for nil. what, if not empty, is the failed action.
func stateError(what string, err error) error {
	if err == nil {
		return nil
	}
	if what != "" {
		err = fmt.Errorf("%s: %w", what, err)
	}
	return newStateError(err, "see that the state and run directories, and the image of --root, are writable and not full (df, df -i), then run again")
}

// newStateError returns an error of the run with this hint, or the hint of the init hook and its output.
func newStateError(err error, hint string) error {
	p := problem{err: report.Error{Code: report.CodeState, Message: err.Error(), Hint: hint}}
	if failed, ok := errors.AsType[*launch.HookError](err); ok {
		p.err.Hint, p.detail = failed.Hint(), failed.Output
	}
	return problems{p}
}

func interruption() error {
	return ofRun(report.Error{
		Code: report.CodeInterrupted, Message: "the run was interrupted", Hint: "run the same command again",
	})
}

// asProblems returns the problems in err. Any other error is an internal error of the host.
func asProblems(err error) problems {
	if p, ok := errors.AsType[problems](err); ok || err == nil {
		return p
	}
	return ofRun(report.Error{Code: pluginv1.CodeInternal.String(), Message: err.Error()})
}

func warningText(w pluginv1.Warning) string { return textAt(w.Field, w.Message) }

func textAt(field, message string) string {
	if field == "" {
		return message
	}
	return field + ": " + message
}
