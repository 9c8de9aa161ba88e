package cli

import (
	"errors"
	"io"
	"os"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/internal/trust"
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

// stateExit returns the error of a run that cannot write its state.
func stateExit(err error) *exitError {
	hint := "check that the directory is writable and not full"
	if failed, ok := errors.AsType[*launch.HookError](err); ok {
		hint = failed.Hint()
	} else if errors.Is(err, os.ErrPermission) {
		hint = "run as root, or give --state-dir and --run-dir"
	}
	return &exitError{code: report.ExitState, message: err.Error(), hint: hint}
}

// untrusted returns an error for a directory that other users can change, and nil for other errors, which the use of the
// directory reports.
func untrusted(flag string, err error) error {
	var refused *trust.Error
	if !errors.As(err, &refused) {
		return nil
	}
	return &exitError{code: report.ExitUntrusted, message: flag + ": " + refused.Error(), hint: refused.Remedy}
}
