package sdk

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"syscall"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk/machine"
)

// Violation is one thing that is wrong with a document: a field path, what is wrong, what to do.
type Violation = document.Violation

// InvalidConfig says that the document is wrong. Give every violation at once.
func InvalidConfig(violations ...Violation) error {
	return &pluginv1.Error{
		Code: pluginv1.CodeInvalidConfig, Message: "the document is not valid", Violations: violations,
	}
}

// Unsupported says that this plugin cannot do it here; another provider may. Field is the field path that it cannot
// express, or empty when the platform is at fault.
func Unsupported(field, message, hint string) error {
	e := &pluginv1.Error{Code: pluginv1.CodeUnsupported, Message: message, Hint: hint}
	if field != "" {
		e.Violations = []Violation{{Field: field, Message: message, Hint: hint}}
	}
	return e
}

// Precondition says that the machine is not ready for it; hint says what an operator does.
func Precondition(message, hint string) error {
	return &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: message, Hint: hint}
}

// Retry says that it is worth trying again, not before after has passed.
func Retry(after time.Duration, message string) error {
	return &pluginv1.Error{Code: pluginv1.CodeRetry, Message: message, RetryAfter: after}
}

// WithDetail attaches what another program said to an error of this package. It reaches the administrator alone, in
// details.json: it may quote what must not stand in a report. Any other error becomes a Precondition.
func WithDetail(err error, words string) error {
	e, ok := asContract(err)
	if !ok {
		e = &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: err.Error()}
	}
	detailed := *e
	detailed.Detail = words
	return &detailed
}

func asContract(err error) (*pluginv1.Error, bool) { return errors.AsType[*pluginv1.Error](err) }

// classify gives the machine's own refusals the code that tells the caller what to do next. What is left is Internal:
// a defect of the plugin.
func classify(ctx context.Context, err error) error {
	if _, ok := asContract(err); ok || err == nil {
		return err
	}
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return err
	}
	code, hint := judge(err)
	return &pluginv1.Error{Code: code, Message: err.Error(), Hint: hint, Detail: outputOf(err)}
}

// judge looks for a refusal that an operator can do something about.
func judge(err error) (pluginv1.Code, string) {
	command, isCommand := errors.AsType[*machine.CommandError](err)
	service, isService := errors.AsType[*machine.ServiceError](err)
	is := func(targets ...error) bool {
		return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
	}
	switch {
	case is(machine.ErrOffline): // the plugin did not ask where it is
		return pluginv1.CodeInternal, ""
	case is(machine.ErrUnsupported):
		return pluginv1.CodeUnsupported, ""
	case is(syscall.ENOSPC):
		return pluginv1.CodePrecondition, "free some space on that file system (df), or some inodes (df -i), then run again"
	case is(syscall.EDQUOT):
		return pluginv1.CodePrecondition, "free some space, or raise the quota on that file system, then run again"
	case is(syscall.EFBIG):
		return pluginv1.CodePrecondition, "raise the limit on the size of files (ulimit -f, LimitFSIZE= of the unit), then run again"
	case is(syscall.EIO):
		return pluginv1.CodePrecondition, "see in the kernel's log whether that disk is failing"
	case is(syscall.EROFS):
		return pluginv1.CodePrecondition, "make that file system writable, or choose a root that is, then run again"
	case is(machine.ErrUnsafe): // its text says what mends it
		return pluginv1.CodePrecondition, "do what the message says, then run again"
	case is(machine.ErrNotRegular, machine.ErrTooLarge, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP):
		return pluginv1.CodePrecondition, "move it away, then run again: something else stands in its place"
	case is(fs.ErrPermission):
		return pluginv1.CodePrecondition, "run as root, and look for an immutable file (lsattr) or a read-only mount"
	case isService && service.Hint != "":
		return pluginv1.CodePrecondition, service.Hint
	case isCommand && command.Stderr != "":
		return pluginv1.CodePrecondition, "see the output of the program in details.json"
	case isCommand, isService:
		return pluginv1.CodePrecondition, ""
	case is(context.DeadlineExceeded): // of the plugin's own; the caller's was judged before
		return pluginv1.CodeRetry, ""
	default:
		return pluginv1.CodeInternal, ""
	}
}

// words is what an error says to people, without its code.
func words(err error) string {
	if known, ok := asContract(err); ok {
		return known.Message
	}
	return err.Error()
}

// outputOf is what another program said, for the administrator alone.
func outputOf(err error) string {
	if known, ok := asContract(err); ok && known.Detail != "" {
		return known.Detail
	}
	if command, ok := errors.AsType[*machine.CommandError](err); ok {
		return command.Stderr
	}
	return ""
}
