package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// reading is a parameter of the document and its current value.
type reading struct {
	parameter
	now     string
	missing bool
}

// observe reads every parameter. A key that the kernel does not have is missing; one that cannot be read is a final
// Precondition, because its current value is unknown.
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

// unknown returns a Precondition for the missing keys that are not optional; nil without any. It is final when the kernel
// has the directory of such a key: a module that another document loads would provide its own directory.
func unknown(kernel machine.Kernel, readings []reading) error {
	var violations []sdk.Violation
	final := false
	for _, r := range readings {
		if !r.missing || r.optional {
			continue
		}
		violations = append(violations, sdk.Violation{
			Field: r.field, Message: "the kernel has no parameter " + r.key.String(),
			Hint:  "correct the key, list " + moduleOf(r.key) + " in spec.modules, or list the key in spec.ignoreMissing",
			Needs: "module:",
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

// applyValues sets all parameters or none: when the kernel refuses a value, or keeps another one, it restores the
// previous values.
func applyValues(kernel machine.Kernel, parameters []parameter, p sdk.Progress) error {
	before, err := observe(kernel, parameters)
	if err == nil {
		err = unknown(kernel, before)
	}
	if err != nil {
		return err
	}
	var present, previous []parameter
	for _, r := range before {
		if r.missing {
			p.Report("skipping " + r.key.String() + ", which this kernel does not have")
			continue
		}
		present = append(present, r.parameter)
		previous = append(previous, parameter{key: r.key, value: r.now})
	}
	for _, p := range present {
		if err := write(kernel, p); err != nil {
			return rollBack(kernel, previous, err)
		}
	}
	if err := verify(kernel, present); err != nil {
		return rollBack(kernel, previous, err)
	}
	return nil
}

// write sets a value that differs at its turn: an earlier write may have changed it.
func write(kernel machine.Kernel, p parameter) error {
	now, err := kernel.Parameter(string(p.key))
	if err != nil {
		return fmt.Errorf("read %s: %w", p.key, err)
	}
	if sameValue(now, p.value) {
		return nil
	}
	if err := kernel.SetParameter(string(p.key), p.value); err != nil {
		hint := "correct the value; the kernel's documentation of the parameter says what it accepts"
		if errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission) {
			hint = "run as root, outside a container: a namespace may make this parameter read-only"
		}
		return &refusedError{p.field, fmt.Sprintf("the kernel refuses %s = %s: %s", p.key, p.value, reason(err)), hint}
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
			return &refusedError{
				p.field,
				fmt.Sprintf("%s = %s was written, but the kernel keeps %s", p.key, p.value, strings.TrimSpace(now)),
				"write the value as the kernel shows it, and check whether another parameter of the document changes this one",
			}
		}
	}
	return nil
}

// refusedError is a value that the kernel refused or did not keep.
type refusedError struct{ field, message, hint string }

func (r *refusedError) Error() string { return r.message }

// rollBack restores the previous values and reports cause, with the values that could not be restored.
func rollBack(kernel machine.Kernel, previous []parameter, cause error) error {
	message, hint := cause.Error()+"; the previous values are restored", "see the machine's log, then run again"
	if failures := restore(kernel, previous); len(failures) > 0 {
		message = cause.Error() + "; not all previous values could be restored: " + strings.Join(failures, "; ")
	}
	if refused, ok := errors.AsType[*refusedError](cause); ok {
		return sdk.At(sdk.Precondition(message, refused.hint), refused.field)
	}
	return sdk.Precondition(message, hint)
}

// restore writes the values in several passes, because writing one may change another. It returns what still differs.
func restore(kernel machine.Kernel, previous []parameter) (failures []string) {
	const passes = 3
	for range passes {
		failures = nil
		for _, p := range previous {
			if err := write(kernel, p); err != nil {
				failures = append(failures, err.Error())
			}
		}
		err := verify(kernel, previous)
		if err == nil {
			return nil
		}
		if len(failures) == 0 {
			failures = []string{err.Error()}
		}
	}
	return failures
}

// reason returns the errno of err by name and as text, or err's message without one.
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
