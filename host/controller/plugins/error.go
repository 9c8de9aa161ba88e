package plugins

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/launch"
)

// Error is a failed call. It has no value of the request.
type Error struct {
	// Code is one of pluginv1, or NoPlugin, Untrusted, Crashed, Deadline or State of contract/report.
	Code          string
	Message, Hint string
	// After is when the call may be repeated; 0: no sooner than the caller wants.
	After time.Duration
	// Status is the fact of pluginv1.FactStatus.
	Status string
}

// Error implements error: the message and the remedy.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + "; remedy: " + e.Hint
}

// Waits says that the call may succeed without a change of its request.
func (e *Error) Waits() bool {
	switch e.Code {
	case pluginv1.CodeRetry.String(), report.CodeCrashed, report.CodeDeadline, report.CodeState:
		return true
	}
	return false
}

// isOver says whether a call has used up its time. A plugin can see the end before the context does.
func isOver(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// failure makes an Error of what a start or a call returned, with the field of the storage that names the plugin.
func failure(ctx context.Context, err error, below string) error {
	var answer *pluginv1.Error
	var paused *pausing
	switch {
	case errors.As(err, &answer):
		return answered(answer, below)
	case errors.Is(err, pluginv1.ErrCrashed), errors.Is(err, errAgain):
		failed := &Error{Code: report.CodeCrashed, Message: "the plugin ended during a call", Hint: "see its lines in the log of the manager"}
		if errors.As(err, &paused) {
			failed.After = paused.left
		}
		return failed
	case isOver(ctx, err), errors.Is(err, errEnded):
		return &Error{Code: report.CodeDeadline, Message: "no answer in time", Hint: "check that the manager reaches the store"}
	}
	_, code := launch.Classify(err)
	failed := &Error{Code: code, Message: err.Error()}
	switch code {
	case report.CodeNoPlugin:
		failed.Hint = "add the plugin to the image of the manager, or name its directory with --plugins"
	case report.CodeUntrusted:
		failed.Hint = launch.Hint(err)
	default:
		failed.Hint = "see its lines in the log of the manager"
	}
	if errors.As(err, &paused) {
		failed.After = paused.left
	}
	return failed
}

// answered is the answer of a plugin, whose fields are below one of the storage.
func answered(answer *pluginv1.Error, below string) *Error {
	failed := &Error{
		Code: answer.Code.String(), Message: answer.Message, Hint: answer.Hint, After: answer.RetryAfter, Status: answer.Facts[pluginv1.FactStatus],
	}
	if failed.Hint == "" && failed.Waits() {
		failed.Hint = "it is tried again; if it stays, check the health of the store"
	}
	var all []string
	for _, v := range answer.Violations {
		text := v.Message
		if v.Field != "" {
			text = below + "." + strings.TrimPrefix(v.Field, "spec.") + ": " + text
		}
		if v.Hint != "" && v.Hint != answer.Hint {
			text += " (" + v.Hint + ")"
		}
		all = append(all, text)
	}
	if len(all) > 0 { // they say what the message says, with the fields
		failed.Message = strings.Join(all, "; ")
	}
	return failed
}
