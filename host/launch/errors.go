package launch

import (
	"errors"
	"io/fs"
	"maps"
	"slices"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/internal/trust"
)

// StartError says that a plugin could not be started, did not shake hands or did not say what it is.
type StartError struct {
	Path   string
	Cause  error
	Stderr string // its last words, for details.json
}

// Error names the file and the cause.
func (e *StartError) Error() string { return e.Path + ": " + e.Cause.Error() }

// Unwrap is the cause.
func (e *StartError) Unwrap() error { return e.Cause }

// ExitCode is the command line's exit code for an error of Find or Start.
func ExitCode(err error) int {
	switch {
	case isUntrusted(err):
		return report.ExitUntrusted
	case isMissing(err), isForbidden(err):
		return report.ExitPrecondition
	default:
		return report.ExitFailed
	}
}

// ReportCode is the report's code for an error of Find or Start.
func ReportCode(err error) string {
	switch {
	case isUntrusted(err):
		return report.CodeUntrusted
	case isMissing(err), isForbidden(err):
		return report.CodeNoPlugin
	default:
		return report.CodeCrashed
	}
}

// Hint is what a person does about an error of Find or Start.
func Hint(err error) string {
	var refused *trust.Error
	if errors.As(err, &refused) {
		return refused.Remedy
	}
	var twice *catalog.DuplicateError
	switch {
	case errors.As(err, &twice):
		return "remove all but one of them, or name the right directory with --plugin-dir"
	case isForbidden(err):
		return "run as root, or let this user read the directory of the plugins"
	case isMissing(err):
		return "install it in one of these directories, or name the directory with --plugin-dir"
	}
	return "read its last words in details.json, or start it alone with machineadm plugins inspect"
}

func isUntrusted(err error) bool {
	var refused *trust.Error
	return errors.As(err, &refused)
}

// isForbidden says that the plugin could not be looked at: it never ran.
func isForbidden(err error) bool {
	var started *StartError
	return errors.Is(err, fs.ErrPermission) && !errors.As(err, &started)
}

func isMissing(err error) bool {
	var missing *catalog.NotFoundError
	var twice *catalog.DuplicateError
	return errors.As(err, &missing) || errors.As(err, &twice)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
