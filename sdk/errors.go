package sdk

import (
	"maps"
	"slices"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk/internal/fault"
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
func Precondition(message, hint string) error { return fault.Precondition(message, hint) }

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
	return fault.With(err, func(e *pluginv1.Error) {
		if e.Code != pluginv1.CodeRetry && e.Code != pluginv1.CodeInternal {
			e.Violations = append(slices.Clip(e.Violations), Violation{Field: field, Message: e.Message, Hint: e.Hint})
		}
	})
}

// Needs names what a Precondition lacks and what another document of the stream can provide: the id of a claim of it, such as
// "sysctl:net.ipv4.ip_forward", or the beginning of ids with a colon at its end. Only a kind with Provides needs it.
func Needs(err error, id string) error {
	return fault.With(err, func(e *pluginv1.Error) {
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
	return fault.With(err, func(e *pluginv1.Error) {
		all := maps.Clone(facts)
		maps.Copy(all, e.Facts)
		e.Facts = all
	})
}

// WithDetail adds the output of another program. Only the administrator sees it, in details.json: it can quote what must
// not be in a report. An error that is not classified becomes a Precondition.
func WithDetail(err error, output string) error { return fault.WithDetail(err, output) }

// Final marks an error that neither waiting nor another document of the stream can fix. The host ends the first planning
// with such a Precondition, and an Activation fails at once when Healthy returns one.
func Final(err error) error { return fault.Final(err) }
