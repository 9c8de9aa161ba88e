package values

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/launch"
)

// Problem is one error of the report with the raw output of other programs that belongs to it.
type Problem struct {
	Err    report.Error
	Detail string // for details.json
	ID     string // of the document; empty for an error of the run: an interruption, a deadline, a failed state store, or a reboot
}

// Problems are the errors of documents or of the run, as an error. The first one decides the exit code.
type Problems []Problem //nolint:errname // a list, which is an error where a stage ends

// Error returns the number of errors.
func (p Problems) Error() string { return fmt.Sprintf("%d errors", len(p)) }

// OrNil returns p as an error, nil if it is empty.
func (p Problems) OrNil() error {
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

// Sorted returns p in the order of errors.
func (p Problems) Sorted() Problems {
	out := slices.Clone(p)
	slices.SortStableFunc(out, func(a, b Problem) int { return compare(a.Err, b.Err) })
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

// OfRun returns an error of the run.
func OfRun(e report.Error) Problems { return Problems{{Err: e}} }

// EndsRun reports whether err is of the run, and not of a document or plugin.
func EndsRun(err error) bool {
	p, ok := errors.AsType[Problems](err)
	return ok && p[0].ID == ""
}

// StateError returns an error of the state store as an error of the run, nil for nil. what, if not empty, is the failed action.
func StateError(what string, err error) error {
	if err == nil {
		return nil
	}
	if what != "" {
		err = fmt.Errorf("%s: %w", what, err)
	}
	return NewStateError(err, "see that the state and run directories, and the image of --root, are writable and not full (df, df -i), then run again")
}

// NewStateError returns an error of the run with this hint, or the hint of the init hook and its output.
func NewStateError(err error, hint string) error {
	p := Problem{Err: report.Error{Code: report.CodeState, Message: err.Error(), Hint: hint}}
	if failed, ok := errors.AsType[*launch.HookError](err); ok {
		p.Err.Hint, p.Detail = failed.Hint(), failed.Output
	}
	return Problems{p}
}

// Interruption returns the error of a run that was interrupted.
func Interruption() error {
	return OfRun(report.Error{
		Code: report.CodeInterrupted, Message: "the run was interrupted", Hint: "run the same command again",
	})
}

// ContextEnded returns the error for the error of the context of a run with this limit, nil for nil.
func ContextEnded(err error, timeout time.Duration) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return OfRun(report.Error{
			Code: report.CodeDeadline, Message: fmt.Sprintf("the run took longer than its %s", timeout),
			Hint: "run it again, with a longer --timeout if it needs one",
		})
	default:
		return Interruption()
	}
}

// AsProblems returns the problems in err. Any other error is an internal error of the host.
func AsProblems(err error) Problems {
	if p, ok := errors.AsType[Problems](err); ok || err == nil {
		return p
	}
	return OfRun(report.Error{Code: pluginv1.CodeInternal.String(), Message: err.Error()})
}

// WarningText returns a warning as one line.
func WarningText(w pluginv1.Warning) string { return TextAt(w.Field, w.Message) }

// TextAt returns a message with the field that it is about, which can be empty.
func TextAt(field, message string) string {
	if field == "" {
		return message
	}
	return field + ": " + message
}
