package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/launch"
)

// failure ends a run: its exit code, and what is wrong.
type failure struct {
	exit   int
	err    report.Error
	detail string // other programs' words, for details.json
}

// Error is the message.
func (f *failure) Error() string { return f.err.Message }

// interruptedFailure is the end that somebody asked for.
func interruptedFailure() *failure {
	return &failure{exit: report.ExitInterrupted, err: report.Error{
		Code: report.CodeInterrupted, Message: "the run was interrupted", Hint: "run the same command again",
	}}
}

// refusal ends a run before anything was changed: everything that is wrong with the stream, at once.
type refusal struct {
	errors []report.Error
	// other is the first document that is not wrong, but cannot be served here. It counts when no error is left to tell.
	other *failure
}

// Error counts the errors.
func (r *refusal) Error() string { return fmt.Sprintf("%d errors in the configuration", len(r.errors)) }

// exit is that of a wrong configuration, if any of the errors is one: it is what has to be mended first.
func (r *refusal) exit() int {
	for _, e := range r.errors {
		if e.Code == pluginv1.CodeInvalidConfig.String() {
			return report.ExitUsage
		}
	}
	return report.ExitPrecondition
}

func (r *refusal) add(e *document.Error) {
	r.errors = append(r.errors, report.Error{
		Code: pluginv1.CodeInvalidConfig.String(), Message: e.Message, Field: e.Field, File: e.File,
		Line: e.Position.Line, Column: e.Position.Column, Hint: e.Hint, Document: label(e.Kind, e.Name),
	})
}

func (r *refusal) orNil() error {
	switch {
	case len(r.errors) > 0:
		return r
	case r.other != nil:
		return r.other
	default:
		return nil
	}
}

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

func stateFailure(err error) *failure {
	return &failure{exit: report.ExitState, err: report.Error{
		Code: report.CodeState, Message: err.Error(),
		Hint: "see that the state and run directories are writable and not full, then run again",
	}}
}

// failure judges what a plugin answered. Overdue and cancelled calls were judged before.
func (it *item) failure(file string, err error) *failure {
	if errors.Is(err, pluginv1.ErrCrashed) {
		it.plugin.Kill() // it is gone, or as good as gone; its last words are read to the end then
		return &failure{exit: report.ExitFailed, detail: it.stderr(), err: it.located(file, report.Error{
			Code: report.CodeCrashed, Message: fmt.Sprintf("the plugin %s crashed: %s", it.binary, err),
			Hint: "read its last words in details.json; running again is safe",
		}, "")}
	}
	e := pluginv1.AsError(err)
	out := report.Error{Code: e.Code.String(), Message: e.Message, Hint: e.Hint}
	field := ""
	if len(e.Violations) > 0 {
		field = e.Violations[0].Field
		if out.Message == "" || e.Code == pluginv1.CodeInvalidConfig {
			out.Message = e.Violations[0].Message
		}
		if out.Hint == "" {
			out.Hint = e.Violations[0].Hint
		}
	}
	f := &failure{exit: report.ExitFailed, detail: e.Detail}
	switch e.Code {
	case pluginv1.CodeUnsupported, pluginv1.CodePrecondition:
		f.exit = report.ExitPrecondition
	case pluginv1.CodeRetry:
		f.exit = report.ExitDeadline
	case pluginv1.CodeInternal:
		out.Hint = fmt.Sprintf("report it to its author with details.json: this is a defect of the plugin %s", it.binary)
		f.detail = joinDetails(e.Detail, it.stderr())
	case pluginv1.CodeInvalidConfig:
		f.exit = report.ExitUsage
	}
	f.err = it.located(file, out, field)
	return f
}

func (it *item) stderr() string {
	if it.plugin == nil || it.plugin.Stderr == nil {
		return ""
	}
	return it.plugin.Stderr()
}

func joinDetails(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n--- stderr of the plugin ---\n" + b
}

// located adds where in the stream the field stands, or the document when no field is at fault.
func (it *item) located(file string, e report.Error, field string) report.Error {
	position := it.doc.Position
	if field != "" {
		position = it.doc.Locate(field)
	}
	e.Field, e.File, e.Line, e.Column = field, file, position.Line, position.Column
	return e
}

// launchFailure judges a plugin that could not be found or started.
func (it *item) launchFailure(file, binary string, err error) *failure {
	f := &failure{exit: launch.ExitCode(err)}
	e := report.Error{Code: launch.ReportCode(err), Message: fmt.Sprintf("plugin %s: %s", binary, err), Hint: launch.Hint(err)}
	var broken *launch.StartError
	switch {
	case errors.As(err, &broken):
		f.detail = broken.Stderr
	case f.exit == report.ExitFailed: // nothing was started: it could not even be looked for, or read
		f.exit, e.Code = report.ExitPrecondition, report.CodeNoPlugin
		e.Hint = "see that this user may look into the plugin directories and read what is in them"
	}
	field := ""
	if it.doc.Provider != "" {
		field = "spec.provider"
	}
	f.err = it.located(file, e, field)
	return f
}

// expired says whether err has the form of a context's end. Whose context that was is not told: a plugin that gives up
// by itself answers the same.
func expired(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// unprompted is the defect of a plugin that gave a call up although nobody had asked for it.
func unprompted(err error) error {
	return &pluginv1.Error{Message: "the plugin gave up by itself: " + err.Error()}
}
