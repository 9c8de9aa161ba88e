package session

import (
	"errors"
	"os"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/launch"
)

func usage(message string) error {
	return &report.Error{Code: report.CodeUsage, Message: message}
}

// stateError returns the error of a run that cannot read or write its state. One for the user stays as it is.
func stateError(err error) *report.Error {
	if e, ok := errors.AsType[*report.Error](err); ok {
		return e
	}
	hint := "check that the directory is writable and not full"
	if failed, ok := errors.AsType[*launch.HookError](err); ok {
		hint = failed.Hint()
	} else if errors.Is(err, os.ErrPermission) {
		hint = "run as root, or give --state-dir and --run-dir"
	}
	return &report.Error{Code: report.CodeState, Message: err.Error(), Hint: hint}
}
