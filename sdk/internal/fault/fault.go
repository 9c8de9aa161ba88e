// Package fault gives the errors of the machine their codes of the contract. The SDK and its ready-made changes share it.
package fault

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/atomicfile"
	"github.com/machineadm/machineadm/sdk/machine"
)

// Precondition reports that the machine is not ready for the document; hint is what the operator has to do.
func Precondition(message, hint string) error {
	return &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: message, Hint: hint}
}

// Caused is a Precondition with the hint of its cause, if that has one. It has the message of its cause and does not
// wrap it: the caller would take the error of a context in it for its own.
func Caused(message, hint string, cause error) error {
	_, own := codeOf(cause)
	if known, ok := Known(cause); ok {
		own = known.Hint
	}
	return WithDetail(Precondition(message, cmp.Or(own, hint)), Output(cause))
}

// WithDetail adds the output of another program. An error that is not classified becomes a Precondition.
func WithDetail(err error, output string) error {
	if _, ok := Known(err); !ok && err != nil {
		err = &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: err.Error()}
	}
	return With(err, func(e *pluginv1.Error) { e.Detail = output })
}

// Final marks an error that neither waiting nor another document of the stream can fix.
func Final(err error) error {
	if _, ok := Known(err); !ok && err != nil {
		return finalError{err}
	}
	return With(err, func(e *pluginv1.Error) { e.Final = true })
}

// finalError is a final error that is not yet classified.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// IsFinal reports whether Final marked an error, or an error that it wraps.
func IsFinal(err error) bool {
	_, marked := errors.AsType[finalError](err)
	known, ok := Known(err)
	return marked || ok && known.Final
}

// With changes a copy of an error, which is classified first. The error of a context stays unchanged.
func With(err error, change func(*pluginv1.Error)) error {
	if err == nil {
		return nil
	}
	known, ok := Known(err)
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

// Known returns the error of the contract in err; ok is false if it has no code yet.
func Known(err error) (*pluginv1.Error, bool) { return errors.AsType[*pluginv1.Error](err) }

// Classify adds the code to an error of the machine. An unknown error is Internal: a defect of the plugin.
func Classify(ctx context.Context, err error) error {
	if _, ok := Known(err); ok || err == nil {
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
		Code: code, Message: err.Error(), Hint: hint, Detail: Output(err),
		Final: code == pluginv1.CodePrecondition && IsFinal(err),
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
	case errors.Is(err, context.DeadlineExceeded): // the plugin's own; Classify returns the caller's unchanged
		return pluginv1.CodeRetry, ""
	default:
		return networkCode(err)
	}
}

// inTheWay is the hint for anything but a regular file or a directory where there must be one.
const inTheWay = "move it away, then run again: something else stands in its place"

// Message returns the message of an error without its code.
func Message(err error) string {
	if known, ok := Known(err); ok {
		return known.Message
	}
	return err.Error()
}

// Output returns the output of another program, which only the administrator may see.
func Output(err error) string {
	if known, ok := Known(err); ok && known.Detail != "" {
		return known.Detail
	}
	if command, ok := errors.AsType[*machine.CommandError](err); ok {
		return strings.Trim(command.Stderr+"\n"+command.Stdout, "\n")
	}
	return ""
}
