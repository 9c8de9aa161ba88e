package launch

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"syscall"

	"github.com/machineadm/machineadm/contract/pluginv1"
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
	case isNoRoom(err):
		return report.ExitState
	case isMissing(err), isForbidden(err), lacksInterpreter(err):
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
	case isNoRoom(err):
		return report.CodeState
	case isMissing(err), isForbidden(err), lacksInterpreter(err):
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
	case isUsurped(err):
		return "end the processes of that user, and choose a directory for sockets that no other user can enter (--run-dir)"
	case isNoRoom(err):
		return "free space, files (df -i) or open descriptors (ulimit -n), or choose another directory with --run-dir"
	case lacksInterpreter(err):
		return "install the interpreter, or a plugin that was built for this machine"
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
	return errors.As(err, &refused) || isUsurped(err)
}

// isNoRoom says that the system had no room for what the start of a plugin needs: a socket, pipes.
func isNoRoom(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE}, func(reason error) bool {
		return errors.Is(err, reason)
	})
}

func lacksInterpreter(err error) bool {
	var missing *InterpreterError
	return errors.As(err, &missing)
}

// isUsurped says that another user's process listens on the plugin's socket.
func isUsurped(err error) bool {
	var peer *pluginv1.PeerError
	return errors.As(err, &peer)
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
