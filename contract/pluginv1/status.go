package pluginv1

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/machineadm/machineadm/contract/pluginv1/pb"
)

// toStatus turns an error of a plugin's function into a gRPC status with ErrorDetail.
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
	s, detailErr := status.New(grpcCode, cut(clean(e.Message), MaxTextBytes)).WithDetails(errorToPB(e))
	if detailErr != nil {
		return status.Error(codes.Internal, "the error could not be encoded")
	}
	return s.Err()
}

// contextError returns the status of a cancelled or overdue call, which is no defect of the plugin; nil for other errors.
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

// fromStatus turns a gRPC status into an error: ErrorDetail into an Error, the end of ctx into the error of ctx, a lost
// connection into ErrCrashed, and everything else into Internal with what is wrong with the status.
func fromStatus(ctx context.Context, call string, err error, trailer metadata.MD) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		return &Error{Code: CodeInternal, Message: err.Error()}
	}
	details := s.Proto().GetDetails()
	for _, packed := range details {
		var detail pb.ErrorDetail
		if packed.MessageIs(&detail) && packed.UnmarshalTo(&detail) == nil {
			e := received(&detail)
			if call != "Plan" { // no other call has claims
				e.Claims = nil
			}
			return e
		}
	}
	if s.Code() == codes.Canceled || s.Code() == codes.DeadlineExceeded {
		if own := over(ctx); own != nil {
			return own
		}
	}
	const closed = "grpc: the client connection is closing"                // gRPC's message and code for a call after Process.Kill
	hasDetails := len(details) > 0 || len(trailer.Get(detailsTrailer)) > 0 // then the plugin has answered
	if s.Code() == codes.Unavailable && !hasDetails || s.Code() == codes.Canceled && s.Message() == closed {
		return fmt.Errorf("%w: the connection is gone", ErrCrashed)
	}
	if s.Code() == codes.ResourceExhausted && strings.Contains(s.Message(), "larger than max") { // gRPC's message, in every language
		return breach("P-6", "a message of %s is larger than its receiver accepts, which must be %d MiB", call, MaxMessageBytes>>20)
	}
	broken := withoutDetail(call, s, details, hasDetails)
	broken.Detail = cut(s.Message(), MaxDetailBytes)
	return broken
}

// detailsTrailer is the trailer with the details of a status.
const detailsTrailer = "grpc-status-details-bin"

// withoutDetail returns the reason why a status has no valid ErrorDetail.
func withoutDetail(call string, s *status.Status, details []*anypb.Any, hasDetails bool) *Error {
	answer := fmt.Sprintf("%s answered the status %s", call, s.Code())
	for _, packed := range details {
		if packed.MessageIs(&pb.ErrorDetail{}) {
			return breach("E-2", "%s with an ErrorDetail that cannot be decoded", answer)
		}
	}
	switch {
	case len(details) > 0:
		return breach("E-2", "%s with details of the type URL %q instead of %q",
			answer, cut(details[0].GetTypeUrl(), MaxTextBytes), "type.googleapis.com/"+(&pb.ErrorDetail{}).ProtoReflect().Descriptor().FullName())
	case strings.Contains(s.Message(), detailsTrailer+" mismatch"): // gRPC's message
		return breach("E-2", "the status of %s and the one in the trailer %s have different codes", call, detailsTrailer)
	case hasDetails, strings.Contains(s.Message(), "malformed "+detailsTrailer):
		return breach("E-2", "%s with a trailer %s that cannot be decoded", answer, detailsTrailer)
	case s.Code() == codes.Unimplemented:
		return breach("P-1, E-1", "%s without an ErrorDetail: either the plugin does not serve this call, or an error of it lacks the detail", answer)
	}
	return breach("E-1", "%s without an ErrorDetail", answer)
}

// over returns the error of ctx if it has ended. It compares the deadline with the clock, because the plugin may end the
// call before the timer of ctx fires.
func over(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}
