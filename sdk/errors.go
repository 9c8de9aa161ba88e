package sdk

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
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

// Preconditions says that the machine is not ready for several fields of the document, each with what an operator does.
func Preconditions(violations ...Violation) error {
	e := &pluginv1.Error{
		Code: pluginv1.CodePrecondition, Message: "the machine is not ready for the document", Violations: violations,
	}
	if len(violations) == 1 {
		e.Message, e.Hint = violations[0].Message, violations[0].Hint
	}
	return e
}

// At says which field of the document an error is about. Errors of the machine are classified first. A Retry and a defect
// of the plugin are about no field and stay as they are.
func At(err error, field string) error {
	return amended(err, func(e *pluginv1.Error) {
		if e.Code != pluginv1.CodeRetry && e.Code != pluginv1.CodeInternal {
			e.Violations = append(slices.Clip(e.Violations), Violation{Field: field, Message: e.Message, Hint: e.Hint})
		}
	})
}

// WithFacts attaches facts for programs, such as an exit code or the name of a failed check. They reach the report: no value
// of the document belongs there.
func WithFacts(err error, facts map[string]string) error {
	return amended(err, func(e *pluginv1.Error) {
		all := maps.Clone(facts)
		maps.Copy(all, e.Facts)
		e.Facts = all
	})
}

// WithDetail attaches what another program said. It reaches the administrator alone, in details.json: it may quote what
// must not stand in a report. An error that says neither what the caller does next nor why becomes a Precondition.
func WithDetail(err error, words string) error {
	if _, ok := asContract(err); !ok && err != nil {
		err = &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: err.Error()}
	}
	return amended(err, func(e *pluginv1.Error) { e.Detail = words })
}

// Final marks an error that neither waiting nor another document of the stream can cure. The host ends the first planning
// with such a Precondition, and an Activation gives up at once when Healthy returns one.
func Final(err error) error {
	if _, ok := asContract(err); !ok && err != nil {
		return finalError{err}
	}
	return amended(err, func(e *pluginv1.Error) { e.Final = true })
}

// finalError is a final error that is not yet classified.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

func isFinal(err error) bool {
	_, marked := errors.AsType[finalError](err)
	known, ok := asContract(err)
	return marked || ok && known.Final
}

// amended changes a copy of an error, which is classified first. The end of a context stays what it is.
func amended(err error, change func(*pluginv1.Error)) error {
	if err == nil {
		return nil
	}
	known, ok := asContract(err)
	if !ok {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		known = pluginv1.AsError(classified(err))
	}
	e := *known
	change(&e)
	return &e
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
	return classified(err)
}

func classified(err error) error {
	code, hint := judge(err)
	return &pluginv1.Error{
		Code: code, Message: err.Error(), Hint: hint, Detail: outputOf(err),
		Final: code == pluginv1.CodePrecondition && isFinal(err),
	}
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
	case isCommand && command.Stderr+command.Stdout != "":
		return pluginv1.CodePrecondition, "see the output of the program in details.json"
	case isCommand, isService:
		return pluginv1.CodePrecondition, ""
	case is(context.DeadlineExceeded): // of the plugin's own; the caller's was judged before
		return pluginv1.CodeRetry, ""
	default:
		return judgeNetwork(err)
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
		return strings.Trim(command.Stderr+"\n"+command.Stdout, "\n")
	}
	return ""
}
