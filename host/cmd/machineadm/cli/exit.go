package cli

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/host/reporting/words"
)

// exitError ends the process with a code. A message is shown; without one, the error has been shown already.
type exitError struct {
	code          int
	message, hint string
}

// Error returns the message.
func (e *exitError) Error() string { return e.message }

// show writes message and hint.
func (e *exitError) show(s streams) {
	if e.message != "" {
		_, _ = io.WriteString(s.err, reporting.Failure(e.message, e.hint, s.width)) // standard error is the last resort
	}
}

// usage returns an error of the command line, whose hint is the help of the command.
func usage(message string) error { return &report.Error{Code: report.CodeUsage, Message: message} }

// fail writes an error that a session reports beside its result.
func (s streams) fail(e *report.Error) { (&exitError{message: e.Message, hint: e.Hint}).show(s) }

// note writes a line of a session.
func (s streams) note(line string) {
	_, _ = io.WriteString(s.err, words.Escape(line)+"\n") // standard error is the last resort
}

// exitOf returns the exit of an error of a command.
func exitOf(c *cobra.Command, err error) *exitError {
	if exit, ok := errors.AsType[*exitError](err); ok {
		return exit
	}
	e, ok := errors.AsType[*report.Error](err)
	switch {
	case !ok: // unexpected, such as a write error on standard output
		return &exitError{code: report.ExitFailed, message: err.Error()}
	case e.Code == report.CodeUsage && e.Hint == "":
		return &exitError{code: report.ExitUsage, message: e.Message, hint: "see " + c.CommandPath() + " --help"}
	}
	return &exitError{code: report.ExitCode(e.Code), message: e.Message, hint: e.Hint}
}
