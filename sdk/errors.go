package sdk

import (
	"cmp"
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
	"github.com/machineadm/machineadm/internal/atomicfile"
	"github.com/machineadm/machineadm/sdk/machine"
)

// Violation is an error in a document: its field path, the message and a hint.
type Violation = document.Violation

// InvalidConfig reports errors in the document, all of them at once.
func InvalidConfig(violations ...Violation) error {
	return &pluginv1.Error{
		Code: pluginv1.CodeInvalidConfig, Message: "the document is not valid", Violations: violations,
	}
}

// Unsupported reports what this provider cannot do here; another one may. Field is the path of the field that it cannot
// express, or empty when the reason is the platform.
func Unsupported(field, message, hint string) error {
	e := &pluginv1.Error{Code: pluginv1.CodeUnsupported, Message: message, Hint: hint}
	if field != "" {
		e.Violations = []Violation{{Field: field, Message: message, Hint: hint}}
	}
	return e
}

// UnsupportedFields reports all fields that this provider cannot express; nil when there is none.
func UnsupportedFields(violations ...Violation) error {
	if len(violations) == 0 {
		return nil
	}
	e := &pluginv1.Error{
		Code: pluginv1.CodeUnsupported, Message: violations[0].Message, Hint: violations[0].Hint, Violations: violations,
	}
	for _, v := range violations[1:] {
		e.Message += "; " + v.Field + ": " + v.Message
	}
	return e
}

// Precondition reports that the machine is not ready for the document; hint is what the operator has to do.
func Precondition(message, hint string) error {
	return &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: message, Hint: hint}
}

// precondition is a Precondition with the hint of its cause, if that has one. It has the message of its cause and does not
// wrap it: the caller would take the error of a context in it for its own.
func precondition(message, hint string, cause error) error {
	_, own := codeOf(cause)
	if known, ok := asContract(cause); ok {
		own = known.Hint
	}
	return WithDetail(Precondition(message, cmp.Or(own, hint)), outputOf(cause))
}

// Retry reports a failure that may pass. The host tries again after the given time.
func Retry(after time.Duration, message string) error {
	return &pluginv1.Error{Code: pluginv1.CodeRetry, Message: message, RetryAfter: after}
}

// Preconditions reports that the machine is not ready for several fields of the document, each with its hint.
func Preconditions(violations ...Violation) error {
	e := &pluginv1.Error{
		Code: pluginv1.CodePrecondition, Message: "the machine is not ready for the document", Violations: violations,
	}
	if len(violations) == 1 {
		e.Message, e.Hint = violations[0].Message, violations[0].Hint
	}
	return e
}

// internal reports a defect of the plugin.
func internal(message string) error {
	return &pluginv1.Error{Code: pluginv1.CodeInternal, Message: message}
}

// At adds the field of the document that an error is about. Errors of the machine are classified first. A Retry and a defect
// of the plugin have no field and stay unchanged.
func At(err error, field string) error {
	return with(err, func(e *pluginv1.Error) {
		if e.Code != pluginv1.CodeRetry && e.Code != pluginv1.CodeInternal {
			e.Violations = append(slices.Clip(e.Violations), Violation{Field: field, Message: e.Message, Hint: e.Hint})
		}
	})
}

// Needs names what a Precondition lacks and what another document of the stream can provide: the id of a claim of it, such as
// "sysctl:net.ipv4.ip_forward", or the beginning of ids with a colon at its end. Only a kind with Provides needs it.
func Needs(err error, id string) error {
	return with(err, func(e *pluginv1.Error) {
		if e.Code != pluginv1.CodePrecondition {
			return
		}
		if e.Violations = slices.Clone(e.Violations); len(e.Violations) == 0 {
			e.Violations = []Violation{{Message: e.Message, Hint: e.Hint}}
		}
		for i := range e.Violations {
			e.Violations[i].Needs = id
		}
	})
}

// WithFacts adds facts for programs, such as an exit code or the name of a failed check. They appear in the report, so they
// must not hold values of the document.
func WithFacts(err error, facts map[string]string) error {
	return with(err, func(e *pluginv1.Error) {
		all := maps.Clone(facts)
		maps.Copy(all, e.Facts)
		e.Facts = all
	})
}

// WithDetail adds the output of another program. Only the administrator sees it, in details.json: it can quote what must
// not be in a report. An error that is not classified becomes a Precondition.
func WithDetail(err error, output string) error {
	if _, ok := asContract(err); !ok && err != nil {
		err = &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: err.Error()}
	}
	return with(err, func(e *pluginv1.Error) { e.Detail = output })
}

// Final marks an error that neither waiting nor another document of the stream can fix. The host ends the first planning
// with such a Precondition, and an Activation fails at once when Healthy returns one.
func Final(err error) error {
	if _, ok := asContract(err); !ok && err != nil {
		return finalError{err}
	}
	return with(err, func(e *pluginv1.Error) { e.Final = true })
}

// finalError is a final error that is not yet classified.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

func isFinal(err error) bool {
	_, marked := errors.AsType[finalError](err)
	known, ok := asContract(err)
	return marked || ok && known.Final
}

// with changes a copy of an error, which is classified first. The error of a context stays unchanged.
func with(err error, change func(*pluginv1.Error)) error {
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

// classify adds the code to an error of the machine. An unknown error is Internal: a defect of the plugin.
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
	code, hint := codeOf(err)
	return &pluginv1.Error{
		Code: code, Message: err.Error(), Hint: hint, Detail: outputOf(err),
		Final: code == pluginv1.CodePrecondition && isFinal(err),
	}
}

// codeOf returns the code of an error, and for one that an operator can fix the hint.
func codeOf(err error) (pluginv1.Code, string) {
	for _, known := range []struct {
		is   error
		code pluginv1.Code
		hint string
	}{
		{machine.ErrOffline, pluginv1.CodeInternal, ""}, // the plugin did not check Offline
		{machine.ErrUnsupported, pluginv1.CodeUnsupported, ""},
		{syscall.ENOSPC, pluginv1.CodePrecondition, "free some space on that file system (df), or some inodes (df -i), then run again"},
		{syscall.EDQUOT, pluginv1.CodePrecondition, "free some space, or raise the quota on that file system, then run again"},
		{syscall.EFBIG, pluginv1.CodePrecondition, "raise the limit on the size of files (ulimit -f, LimitFSIZE= of the unit), then run again"},
		{syscall.EIO, pluginv1.CodePrecondition, "see in the kernel's log whether that disk is failing"},
		{syscall.EROFS, pluginv1.CodePrecondition, "make that file system writable, or choose a root that is, then run again"},
		{machine.ErrUnsafe, pluginv1.CodePrecondition, "do what the message says, then run again"},
		{machine.ErrNotRegular, pluginv1.CodePrecondition, inTheWay},
		{machine.ErrTooLarge, pluginv1.CodePrecondition, inTheWay},
		{syscall.ENOTDIR, pluginv1.CodePrecondition, inTheWay},
		{syscall.EISDIR, pluginv1.CodePrecondition, inTheWay},
		{syscall.ELOOP, pluginv1.CodePrecondition, inTheWay},
		{syscall.ENOTEMPTY, pluginv1.CodePrecondition, inTheWay},
		{syscall.ENAMETOOLONG, pluginv1.CodePrecondition, "choose a path whose names have at most 255 bytes each, then run again"},
		{machine.ErrTwice, pluginv1.CodePrecondition, "correct the link, or keep one of the two; namei -l shows the links of a path"},
		{machine.ErrReserved, pluginv1.CodePrecondition, "choose another name for the file"},
		{machine.ErrForeign, pluginv1.CodePrecondition, inTheWay},
		{atomicfile.ErrBusy, pluginv1.CodeRetry, ""},
		{fs.ErrPermission, pluginv1.CodePrecondition, "run as root, and look for an immutable file (lsattr) or a read-only mount"},
	} {
		if errors.Is(err, known.is) {
			return known.code, known.hint
		}
	}
	command, isCommand := errors.AsType[*machine.CommandError](err)
	service, isService := errors.AsType[*machine.ServiceError](err)
	switch {
	case isService && service.Hint != "":
		return pluginv1.CodePrecondition, service.Hint
	case isCommand && command.Stderr+command.Stdout != "":
		return pluginv1.CodePrecondition, "see the output of the program in details.json"
	case isCommand, isService:
		return pluginv1.CodePrecondition, ""
	case errors.Is(err, context.DeadlineExceeded): // the plugin's own; classify returns the caller's unchanged
		return pluginv1.CodeRetry, ""
	default:
		return networkCode(err)
	}
}

// inTheWay is the hint for anything but a regular file or a directory where there must be one.
const inTheWay = "move it away, then run again: something else stands in its place"

// messageOf returns the message of an error without its code.
func messageOf(err error) string {
	if known, ok := asContract(err); ok {
		return known.Message
	}
	return err.Error()
}

// outputOf returns the output of another program, which only the administrator may see.
func outputOf(err error) string {
	if known, ok := asContract(err); ok && known.Detail != "" {
		return known.Detail
	}
	if command, ok := errors.AsType[*machine.CommandError](err); ok {
		return strings.Trim(command.Stderr+"\n"+command.Stdout, "\n")
	}
	return ""
}
