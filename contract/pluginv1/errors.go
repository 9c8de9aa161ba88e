package pluginv1

import (
	"errors"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1/pb"
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
	Detail     string               // raw output of other programs, only for details.json
	Final      bool                 // Precondition: no other document of the stream can resolve it
	Facts      map[string]string    // for programs; they reach the report
	Claims     []Claim              // Precondition, Retry of Plan: what the document owns, as far as it was planned
	// Clause names the clauses of SPEC.md that the plugin violates, separated by commas. Client sets it; it is never sent.
	Clause string
}

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

func errorToPB(e *Error) *pb.ErrorDetail {
	out := &pb.ErrorDetail{
		Code: map[Code]pb.Code{
			CodeInternal: pb.Code_CODE_INTERNAL, CodeInvalidConfig: pb.Code_CODE_INVALID_CONFIG,
			CodeUnsupported: pb.Code_CODE_UNSUPPORTED, CodePrecondition: pb.Code_CODE_PRECONDITION,
			CodeRetry: pb.Code_CODE_RETRY,
		}[e.Code],
		Message: clean(e.Message), Hint: clean(e.Hint), Detail: clean(e.Detail),
	}
	if e.RetryAfter > 0 {
		out.RetryAfter = durationpb.New(e.RetryAfter)
	}
	out.Final, out.Claims = e.Final, claimsToPB(e.Claims)
	for key, value := range e.Facts {
		if out.Facts == nil {
			out.Facts = map[string]string{}
		}
		out.Facts[clean(key)] = clean(value)
	}
	for _, v := range e.Violations {
		out.Violations = append(out.Violations,
			&pb.Violation{Field: clean(v.Field), Message: clean(v.Message), Hint: clean(v.Hint)})
	}
	return out
}

func errorFromPB(d *pb.ErrorDetail) *Error {
	e := &Error{
		Message: d.GetMessage(), Hint: d.GetHint(), Detail: d.GetDetail(),
		Final: d.GetFinal(), Facts: d.GetFacts(), Claims: claimsFromPB(d.GetClaims()),
	}
	switch d.GetCode() {
	case pb.Code_CODE_INVALID_CONFIG:
		e.Code = CodeInvalidConfig
	case pb.Code_CODE_UNSUPPORTED:
		e.Code = CodeUnsupported
	case pb.Code_CODE_PRECONDITION:
		e.Code = CodePrecondition
	case pb.Code_CODE_RETRY:
		e.Code = CodeRetry
		if d.GetRetryAfter().IsValid() {
			e.RetryAfter = max(0, d.GetRetryAfter().AsDuration())
		}
	default:
		e.Code = CodeInternal
	}
	for _, v := range d.GetViolations() {
		e.Violations = append(e.Violations,
			document.Violation{Field: v.GetField(), Message: v.GetMessage(), Hint: v.GetHint()})
	}
	return e
}

// clean makes a text valid UTF-8, which protobuf requires: an error must not be lost for it.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
