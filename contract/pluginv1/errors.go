package pluginv1

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1/pb"
)

// Code says what the caller does next.
type Code int

// The codes of the contract's error table.
const (
	CodeInternal      Code = iota // a defect of the plugin: stop, report a bug
	CodeInvalidConfig             // the document is wrong: point at every field, change nothing
	CodeUnsupported               // this plugin cannot do it: try the next candidate
	CodePrecondition              // the machine is not ready: tell the operator what to do
	CodeRetry                     // try again after a while
)

// String is the code as reports spell it.
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

// Error is an error of the contract. Its texts never hold a value of the document.
type Error struct {
	Code       Code
	Message    string               // one sentence
	Hint       string               // what to do about it
	Violations []document.Violation // InvalidConfig: every one; Unsupported, Precondition: the fields at fault, if any
	RetryAfter time.Duration        // Retry: not before
	Detail     string               // raw output of other programs, for details.json alone
	Final      bool                 // Precondition: no other document of the stream can cure it
	Facts      map[string]string    // for programs; they reach the report
	Claims     []Claim              // Precondition, Retry of Plan: what the document owns, as far as the planning got
}

// Error is the code, the message and every violation, on one line.
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

// AsError returns the contract's error in err's chain; any other error is Internal.
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

// ErrCrashed says that the plugin's process or its stream ended where the protocol does not allow it.
var ErrCrashed = errors.New("the plugin ended without an answer")

// toStatus turns an error of a plugin's function into the gRPC status that carries ErrorDetail.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	if ctxErr := contextError(err); ctxErr != nil {
		return ctxErr
	}
	e := AsError(err)
	grpcCode := map[Code]codes.Code{
		CodeInvalidConfig: codes.InvalidArgument, CodeUnsupported: codes.Unimplemented,
		CodePrecondition: codes.FailedPrecondition, CodeRetry: codes.Unavailable, CodeInternal: codes.Internal,
	}[e.Code]
	s, detailErr := status.New(grpcCode, clean(e.Message)).WithDetails(errorToPB(e))
	if detailErr != nil {
		return status.Error(codes.Internal, "the error could not be encoded")
	}
	return s.Err()
}

// contextError keeps a cancelled or overdue call what it is, so that the host does not take it for a plugin's defect.
func contextError(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return nil
	}
	switch {
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, "cancelled")
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, "deadline exceeded")
	}
	return nil
}

// fromStatus is the client's side: only a status that carries ErrorDetail is one of the five codes, except that the
// end of a call's own context stays that, and a lost connection is a crash.
func fromStatus(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		return &Error{Code: CodeInternal, Message: err.Error()}
	}
	for _, d := range s.Details() {
		if detail, ok := d.(*pb.ErrorDetail); ok {
			return errorFromPB(detail)
		}
	}
	if s.Code() == codes.Canceled || s.Code() == codes.DeadlineExceeded {
		if own := over(ctx); own != nil {
			return own
		}
	}
	const closed = "grpc: the client connection is closing" // gRPC's words and code for a call after Process.Kill
	if s.Code() == codes.Unavailable || s.Code() == codes.Canceled && s.Message() == closed {
		return fmt.Errorf("%w: the connection is gone", ErrCrashed)
	}
	switch s.Code() {
	case codes.Unimplemented:
		return &Error{Code: CodeInternal, Message: "the plugin does not serve this call of the protocol"}
	case codes.ResourceExhausted:
		return &Error{Code: CodeInternal, Message: fmt.Sprintf("a message is larger than %d MiB", MaxMessageBytes>>20)}
	default:
		return &Error{Code: CodeInternal, Message: "the plugin answered " + s.Code().String(), Detail: s.Message()}
	}
}

// over is why ctx is over, nil while it is not. Its deadline counts by the clock: the plugin may notice it before the
// timer of this side does.
func over(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

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
			e.RetryAfter = d.GetRetryAfter().AsDuration()
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

// clean keeps a text encodable: protobuf refuses a string that is not UTF-8, and an error must not be lost to that.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
