package pluginv1

import (
	"errors"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/document"
)

// Code is the class of an error. It determines what the caller does next.
type Code int

// The codes of the contract's error table.
const (
	CodeInternal      Code = iota // a defect of the plugin: stop, report a bug
	CodeInvalidConfig             // the document is wrong: report every field, change nothing
	CodeUnsupported               // the plugin does not support it: try the next candidate
	CodePrecondition              // the machine is not ready: show the operator what to do
	CodeRetry                     // try again after a while
)

// String returns the code as in reports.
func (c Code) String() string {
	switch c {
	case CodeInvalidConfig:
		return "InvalidConfig"
	case CodeUnsupported:
		return "Unsupported"
	case CodePrecondition:
		return "Precondition"
	case CodeRetry:
		return "Retry"
	default:
		return "Internal"
	}
}

// Error is an error of the contract. Its texts contain no value of the document.
type Error struct {
	Code       Code
	Message    string               // one sentence
	Hint       string               // the remedy
	Violations []document.Violation // InvalidConfig: all; Unsupported, Precondition: the fields that cause it, if any
	RetryAfter time.Duration        // Retry: not before
	Detail     string               // raw output of other programs, only for details.json; see CausePrefix
	Final      bool                 // Precondition: no other document of the stream can resolve it
	Facts      map[string]string    // for programs; they reach the report
	Claims     []Claim              // Precondition, Retry of Plan: what the document owns, as far as it was planned
	Warnings   []Warning            // Precondition, Retry of Plan: those that hold whatever is missing
	// Clause names the clauses of SPEC.md that the plugin violates, separated by commas. Client sets it; it is never sent.
	Clause string
}

// CausePrefix begins a first line of Detail that holds the decisive line of that output. machineadm status shows it to root
// behind the message.
const CausePrefix = "cause: "

// Error returns the code, the message and every violation, on one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Code.String())
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	for i, v := range e.Violations {
		b.WriteString(map[bool]string{true: ": ", false: "; "}[i == 0])
		if v.Field != "" {
			b.WriteString(v.Field + ": ")
		}
		b.WriteString(v.Message)
	}
	return b.String()
}

// AsError returns the Error in err's chain; any other error becomes Internal.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: CodeInternal, Message: err.Error()}
}

// ErrCrashed is an end of the plugin's process or stream that the protocol does not allow.
var ErrCrashed = errors.New("the plugin ended without an answer")

// clean makes a text valid UTF-8, which protobuf requires: an error must not be lost for it.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
