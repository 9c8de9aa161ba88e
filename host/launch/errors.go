package launch

import (
	"errors"
	"io/fs"
	"slices"
	"syscall"

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/internal/trust"
)

// StartError reports a plugin that did not start, failed the handshake or did not describe itself.
type StartError struct {
	Path   string
	Cause  error
	Stderr string // the end of its stderr, for details.json
	Slow   bool   // the plugin did not do so in time
}

// Error returns the path and the cause.
func (e *StartError) Error() string { return e.Path + ": " + e.Cause.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Cause }

// Failure returns an error of Find or Start for the operator.
func Failure(message string, err error) *report.Error {
	_, code := Classify(err)
	return &report.Error{Code: code, Message: message, Hint: Hint(err)}
}

// Classify returns the exit code and the report's code for an error of Find or Start.
func Classify(err error) (exit int, code string) {
	code = classify(err)
	return report.ExitCode(code), code
}

func classify(err error) string {
	switch {
	case is[*trust.Error](err) || is[*launch.PeerError](err):
		return report.CodeUntrusted
	case isNoSpace(err):
		return report.CodeState
	case is[*catalog.NotFoundError](err) || is[*catalog.DuplicateError](err) || isForbidden(err) || is[*InterpreterError](err):
		return report.CodeNoPlugin
	case isSlow(err):
		return pluginv1.CodeRetry.String()
	case isUnready(err):
		return pluginv1.CodePrecondition.String()
	default:
		return report.CodeCrashed
	}
}

// Hint returns what the operator can do about an error of Find or Start.
func Hint(err error) string {
	if refused, ok := errors.AsType[*trust.Error](err); ok {
		return refused.Remedy
	}
	if answer, ok := errors.AsType[*pluginv1.Error](err); ok && answer.Hint != "" {
		return answer.Hint
	}
	switch {
	case is[*launch.PeerError](err): // another user's process listens on the plugin's socket
		return "end the processes of that user, and choose a directory for sockets that no other user can enter (--run-dir)"
	case isNoSpace(err):
		return "free space, files (df -i) or open descriptors (ulimit -n), or choose another directory with --run-dir"
	case is[*InterpreterError](err):
		return "install the interpreter, or a plugin that was built for this machine"
	case is[*catalog.DuplicateError](err):
		return "remove all but one of them, or name the right directory with --plugin-dir; below /usr/local it is of make install, " +
			"below /usr/libexec of the package machineadm-plugins or the system extension machineadm, below /opt of an archive"
	case isForbidden(err):
		return "run as root, or let this user read the plugin directories"
	case is[*catalog.NotFoundError](err):
		return "install it in one of these directories, or name its directory with --plugin-dir"
	}
	if isSlow(err) {
		return "run again when the machine is less busy; if it repeats, the plugin hangs: read its output in details.json"
	}
	return "read its output in details.json, or start it alone with machineadm plugins inspect"
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// isSlow reports that the plugin did not start or describe itself in time, which the next try may do.
func isSlow(err error) bool {
	failed, ok := errors.AsType[*StartError](err)
	return ok && failed.Slow
}

// isUnready reports that the plugin answered Describe with a Precondition: the machine keeps it from finding out how it fits.
func isUnready(err error) bool {
	answer, ok := errors.AsType[*pluginv1.Error](err)
	return ok && answer.Code == pluginv1.CodePrecondition
}

// isNoSpace reports that a resource for the start was exhausted: disk space, inodes or descriptors.
func isNoSpace(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE}, func(reason error) bool {
		return errors.Is(err, reason)
	})
}

// isForbidden reports that the plugin's file could not be opened, so that the plugin never ran.
func isForbidden(err error) bool { return errors.Is(err, fs.ErrPermission) && !is[*StartError](err) }
