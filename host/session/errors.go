package session

import (
	"errors"
	"os"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/internal/trust"
)

func usage(message string) error {
	return &report.Error{Code: report.CodeUsage, Message: message}
}

// stateError returns the error of a run that cannot read or write its state.
func stateError(err error) *report.Error {
	hint := "check that the directory is writable and not full"
	if failed, ok := errors.AsType[*launch.HookError](err); ok {
		hint = failed.Hint()
	} else if errors.Is(err, os.ErrPermission) {
		hint = "run as root, or give --state-dir and --run-dir"
	}
	return &report.Error{Code: report.CodeState, Message: err.Error(), Hint: hint}
}

// untrusted returns an error for a directory that other users can change, and nil for other errors, which the use of the
// directory reports.
func untrusted(flag string, err error) error {
	var refused *trust.Error
	if !errors.As(err, &refused) {
		return nil
	}
	return &report.Error{Code: report.CodeUntrusted, Message: flag + ": " + refused.Error(), Hint: refused.Remedy}
}
