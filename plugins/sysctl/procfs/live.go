package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/machineadm/machineadm/plugins/sysctl/internal/sysctld"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// reading is what the kernel says about one parameter of the document.
type reading struct {
	parameter
	now     string
	missing bool
}

// observe reads every parameter. A key that the kernel does not have is missing. Those that cannot be read are a final
// Precondition: whether they are set would be unknown.
func observe(kernel machine.Kernel, parameters []parameter) ([]reading, error) {
	var readings []reading
	var violations []sdk.Violation
	for _, p := range parameters {
		now, err := kernel.Parameter(string(p.key))
		switch {
		case err == nil:
			readings = append(readings, reading{parameter: p, now: strings.TrimSpace(now)})
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			readings = append(readings, reading{parameter: p, missing: true})
		case errors.Is(err, machine.ErrOffline), errors.Is(err, machine.ErrUnsupported):
			return nil, err
		default:
			violations = append(violations, unreadable(p, err))
		}
	}
	if len(violations) > 0 {
		return nil, sdk.Final(sdk.Preconditions(violations...))
	}
	return readings, nil
}

func unreadable(p parameter, err error) sdk.Violation {
	hint := "remove it from the document"
	switch {
	case errors.Is(err, fs.ErrPermission):
		hint = "run as root; a parameter that not even root can read is an action, not a setting: remove it from the document"
	case errors.Is(err, machine.ErrNotRegular):
		return sdk.Violation{Field: p.field, Message: p.key.String() + " is a group of parameters", Hint: "name one parameter of it"}
	}
	return sdk.Violation{Field: p.field, Message: fmt.Sprintf("%s cannot be read: %s", p.key, reason(err)), Hint: hint}
}

// unknown is what to say about keys that the kernel does not have and that nothing excuses; nil when there are none. It is
// final when the kernel has the directory of such a key: a module that another document loads brings one of its own.
func unknown(kernel machine.Kernel, readings []reading) error {
	var violations []sdk.Violation
	final := false
	for _, r := range readings {
		if !r.missing || r.optional {
			continue
		}
		violations = append(violations, sdk.Violation{
			Field: r.field, Message: "the kernel has no parameter " + r.key.String(),
			Hint: "correct the key, list the module that provides it in spec.modules, or list the key in spec.ignoreMissing",
		})
		_, err := kernel.Parameter(path.Dir(string(r.key)))
		final = final || errors.Is(err, machine.ErrNotRegular)
	}
	switch {
	case len(violations) == 0:
		return nil
	case final:
		return sdk.Final(sdk.Preconditions(violations...))
	}
	return sdk.Preconditions(violations...)
}

// applyValues makes the kernel's values those of the document, all or none: when the kernel refuses one, or keeps
// another value than was written, the values of before are put back.
func applyValues(kernel machine.Kernel, parameters []parameter, p sdk.Progress) error {
	before, err := observe(kernel, parameters)
	if err != nil {
		return err
	}
	if err := unknown(kernel, before); err != nil {
		return err
	}
	var present, old []parameter
	for _, r := range before {
		if r.missing {
			p.Report("skipping " + r.key.String() + ", which this kernel does not have")
			continue
		}
		present = append(present, r.parameter)
		restored := r.parameter
		restored.value = r.now
		old = append(old, restored)
	}
	if err := write(kernel, present); err != nil {
		return putBack(kernel, old, err)
	}
	if err := verify(kernel, present); err != nil {
		return putBack(kernel, old, err)
	}
	return nil
}

// write sets, in order, each value that differs at its turn: an earlier one may have changed it meanwhile.
func write(kernel machine.Kernel, parameters []parameter) error {
	for _, p := range parameters {
		now, err := kernel.Parameter(string(p.key))
		if err != nil {
			return fmt.Errorf("read %s: %w", p.key, err)
		}
		if sameValue(now, p.value) {
			continue
		}
		if err := kernel.SetParameter(string(p.key), p.value); err != nil {
			return &refusedError{key: p.key, value: p.value, err: err}
		}
	}
	return nil
}

func verify(kernel machine.Kernel, parameters []parameter) error {
	for _, p := range parameters {
		now, err := kernel.Parameter(string(p.key))
		if err != nil {
			return fmt.Errorf("read %s back: %w", p.key, err)
		}
		if !sameValue(now, p.value) {
			return &refusedError{key: p.key, value: p.value, kept: strings.TrimSpace(now)}
		}
	}
	return nil
}

// putBack restores the old values and reports cause, and also what could not be restored.
func putBack(kernel machine.Kernel, old []parameter, cause error) error {
	message, hint := cause.Error(), "look at the machine's log, then run again"
	if refused, ok := errors.AsType[*refusedError](cause); ok {
		hint = refused.hint()
	}
	if failures := restore(kernel, old); len(failures) > 0 {
		return sdk.Precondition(message+"; not all former values could be put back: "+strings.Join(failures, "; "), hint)
	}
	return sdk.Precondition(message+"; the former values are back", hint)
}

// restore goes over the values more than once, because restoring one may change another. It returns what still differs.
func restore(kernel machine.Kernel, old []parameter) []string {
	const passes = 3
	var failures []string
	for range passes {
		failures = nil
		for _, p := range old {
			if err := write(kernel, []parameter{p}); err != nil {
				failures = append(failures, err.Error())
			}
		}
		if verify(kernel, old) == nil {
			return nil
		}
	}
	if err := verify(kernel, old); len(failures) == 0 && err != nil {
		failures = append(failures, err.Error())
	}
	return failures
}

// refusedError is a value that the kernel did not take: with an errno, or by keeping another value.
type refusedError struct {
	key         sysctld.Key
	value, kept string
	err         error
}

func (r *refusedError) Error() string {
	if r.err != nil {
		return fmt.Sprintf("the kernel refuses %s = %s: %s", r.key, r.value, reason(r.err))
	}
	return fmt.Sprintf("%s = %s was written, but the kernel keeps %s", r.key, r.value, r.kept)
}

func (r *refusedError) Unwrap() error { return r.err }

func (r *refusedError) hint() string {
	switch {
	case r.err == nil:
		return "write the value as the kernel shows it, and look for another parameter of the document that changes this one"
	case errors.Is(r.err, syscall.EROFS), errors.Is(r.err, fs.ErrPermission):
		return "run as root, outside a container: a namespace may make this parameter read-only"
	}
	return "correct the value; the kernel's documentation of the parameter says what it takes"
}

// reason is the errno by name and in words, or the error itself where there is none.
func reason(err error) string {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return err.Error()
	}
	if name := errnoName(errno); name != "" {
		return fmt.Sprintf("%s (%s)", name, errno.Error())
	}
	return errno.Error()
}
