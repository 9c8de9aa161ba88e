package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/launch"
)

// problem is one error of the report, and the raw output of other programs that belongs to it.
type problem struct {
	err    report.Error
	detail string // for details.json
	id     string // of the document, when the decoder found it
}

// problems ends a stage of the run. Its first element decides the exit code.
type problems []problem

// Error counts them.
func (p problems) Error() string { return fmt.Sprintf("%d errors", len(p)) }

// orNil is p as an error, nil when there is none.
func (p problems) orNil() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// precedence orders errors of several documents: the first code of this list that occurs decides the exit code. What the
// author of the stream has to correct comes before what the machine lacks.
var precedence = []string{ //nolint:gochecknoglobals // a constant table
	report.CodeInterrupted, report.CodeState, pluginv1.CodeInvalidConfig.String(), report.CodeConflict, report.CodeUsage,
	report.CodeUntrusted, pluginv1.CodeInternal.String(), report.CodeCrashed, report.CodeDeadline,
	pluginv1.CodeRetry.String(), report.CodeNoPlugin, pluginv1.CodeUnsupported.String(), pluginv1.CodePrecondition.String(),
}

// sorted puts the problem that decides the exit code first and keeps the order of the stream otherwise.
func (p problems) sorted() problems {
	rank := func(x problem) int { return slices.Index(precedence, x.err.Code) }
	out := slices.Clone(p)
	slices.SortStableFunc(out, func(a, b problem) int { return rank(a) - rank(b) })
	return out
}

func one(e report.Error) problems { return problems{{err: e}} }

func interrupted() problems {
	return one(report.Error{
		Code: report.CodeInterrupted, Message: "the run was interrupted", Hint: "run the same command again",
	})
}

func stateProblem(err error) problems {
	return one(report.Error{
		Code: report.CodeState, Message: err.Error(),
		Hint: "see that the state and run directories, and the image of --root, are writable and not full (df, df -i), then run again",
	})
}

// of names the document in problems of the run that ended its turn.
func (p problems) of(d doc) problems {
	out := slices.Clone(p)
	for i := range out {
		out[i].err.Document = d.label()
	}
	return out
}

// ending ends the run at once: an interruption, a deadline, state that cannot be kept, or a reboot.
type ending struct{ problems }

// asProblems is what ends a stage: problems as they are, anything else an error of this program.
func asProblems(err error) problems {
	var p problems
	var end *ending
	switch {
	case err == nil || errors.As(err, &p):
		return p
	case errors.As(err, &end):
		return end.problems
	}
	return one(report.Error{Code: pluginv1.CodeInternal.String(), Message: err.Error()})
}

// label is KIND/NAME.
func label(kind, name string) string {
	switch {
	case kind == "":
		return name
	case name == "":
		return kind
	default:
		return kind + "/" + name
	}
}

// label is the document as messages call it.
func (d doc) label() string { return label(d.Kind, d.Name) }

// at adds the document to an error, and where in the stream the field stands, or the document when no field is at fault.
func (d doc) at(field string, e report.Error) report.Error {
	position := d.Position
	if field != "" {
		position = d.Locate(field)
	}
	e.Document, e.Field, e.File, e.Line, e.Column = d.label(), field, d.file, position.Line, position.Column
	return e
}

// fromDecoder is an error that the decoder found.
func fromDecoder(e *document.Error) problem {
	return problem{id: strconv.Itoa(e.Index + 1), err: report.Error{
		Code: pluginv1.CodeInvalidConfig.String(), Message: e.Message, Field: e.Field, File: e.File,
		Line: e.Position.Line, Column: e.Position.Column, Hint: e.Hint, Document: label(e.Kind, e.Name),
	}}
}

// fromPlugin is what a plugin answered: one problem for each violation, located at its field.
func (d doc) fromPlugin(by *candidate, err error) problems {
	if errors.Is(err, pluginv1.ErrCrashed) {
		by.plugin.Kill() // reads its stderr to the end
		out := report.Error{
			Code: report.CodeCrashed, Message: fmt.Sprintf("the plugin %s crashed: %s", by.binary, err),
			Hint: "running again is safe",
		}
		detail := by.stderr()
		if detail != "" {
			out.Hint = "read the end of its log in details.json; running again is safe"
		}
		return problems{{err: d.at("", out), detail: detail}}
	}
	e := pluginv1.AsError(err)
	base := report.Error{Code: e.Code.String(), Message: e.Message, Hint: e.Hint, Facts: e.Facts}
	detail := e.Detail
	if e.Code == pluginv1.CodeInternal {
		base.Hint = fmt.Sprintf("report this defect of the plugin %s to its author", by.binary)
		if detail = joinDetails(e.Detail, by.stderr()); detail != "" {
			base.Hint += ", with details.json"
		}
	}
	if len(e.Violations) == 0 {
		return problems{{err: d.at("", base), detail: detail}}
	}
	var out problems
	for _, v := range e.Violations[:min(len(e.Violations), document.MaxErrors)] {
		here := base
		here.Hint = firstOf(e.Hint, v.Hint)
		if e.Code == pluginv1.CodeInvalidConfig || here.Message == "" || len(e.Violations) > 1 { // what each field says
			here.Message, here.Hint = firstOf(v.Message, e.Message), firstOf(v.Hint, e.Hint)
		}
		out = append(out, problem{err: d.at(v.Field, here)})
	}
	if more := len(e.Violations) - document.MaxErrors; more > 0 {
		out = append(out, problem{err: d.at("", report.Error{
			Code: base.Code, Message: fmt.Sprintf("has %d more errors", more), Hint: "correct those that are listed first",
		})})
	}
	out[0].detail = detail
	return out
}

func joinDetails(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n--- stderr of the plugin ---\n" + b
}

// fromLaunch is a plugin that could not be found or started.
func (d doc) fromLaunch(binary string, err error) problems {
	exit, code := launch.Classify(err)
	e := report.Error{Code: code, Message: fmt.Sprintf("plugin %s: %s", binary, err), Hint: launch.Hint(err)}
	var broken *launch.StartError
	detail := ""
	switch {
	case errors.As(err, &broken):
		detail = broken.Stderr
	case exit == report.ExitFailed: // nothing was started: it could not even be looked for, or read
		e.Code = report.CodeNoPlugin
		e.Hint = "see that this user may read the plugin directories and what is in them"
	}
	field := ""
	if d.Provider != "" {
		field = "spec.provider"
	}
	return problems{{err: d.at(field, e), detail: detail}}
}

// expired says whether err has the form of a context's end. Whose context that was is open: a plugin that gives up by
// itself answers the same.
func expired(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// unprompted is the defect of a plugin that gave up a call which was not cancelled.
func unprompted(err error) error {
	return &pluginv1.Error{Message: "the plugin gave up by itself: " + err.Error()}
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
