package cli

import (
	"errors"
	"io"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/host/reporting/words"
)

// exitError ends the process with a code. A message is shown; without one, the error has been shown already.
type exitError struct {
	code          int
	message, hint string
	usage         bool // the hint is the help of the command
}

// Error returns the message.
func (e *exitError) Error() string { return e.message }

// show writes message and hint.
func (e *exitError) show(s streams) {
	if e.message != "" {
		_, _ = io.WriteString(s.err, reporting.Failure(e.message, e.hint, s.width)) // standard error is the last resort
	}
}

func usage(message string) error {
	return &exitError{code: report.ExitUsage, message: message, usage: true}
}

// fail writes an error that a session reports beside its result.
func (s streams) fail(e *report.Error) { (&exitError{message: e.Message, hint: e.Hint}).show(s) }

// note writes a line of a session.
func (s streams) note(line string) {
	_, _ = io.WriteString(s.err, words.Escape(line)+"\n") // standard error is the last resort
}

// ofSession returns the exit of an error of a session, which without a hint concerns a flag.
func ofSession(err error) (*exitError, bool) {
	e, ok := errors.AsType[*report.Error](err)
	if !ok {
		return nil, false
	}
	return &exitError{
		code: report.ExitCode(e.Code), message: e.Message, hint: e.Hint, usage: e.Code == report.CodeUsage && e.Hint == "",
	}, true
}
