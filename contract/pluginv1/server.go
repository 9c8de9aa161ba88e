package pluginv1

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"google.golang.org/grpc"

	"github.com/machineadm/machineadm/contract/pluginv1/pb"
)

type describeServer struct {
	pb.UnimplementedPluginServer
	impl Describer
}

type server struct {
	pb.UnimplementedConfiguratorServer
	impl Configurator
}

func (s *describeServer) Describe(ctx context.Context, r *pb.DescribeRequest) (answer *pb.DescribeResponse, err error) {
	defer encode(&err)
	defer recovered(&err)
	d, err := s.impl.Describe(ctx, DescribeRequest{
		Root: r.GetRoot(), Target: targetFromPB(r.GetTarget()),
		RuntimeVersion: r.GetRuntimeVersion(), JSONSchema: r.GetJsonSchema(),
	})
	if err != nil {
		return nil, err
	}
	return descriptionToPB(d), nil
}

func (s *server) Plan(ctx context.Context, r *pb.PlanRequest) (answer *pb.PlanResponse, err error) {
	defer encode(&err)
	defer recovered(&err)
	plan, err := s.impl.Plan(ctx, Request{
		Document: r.GetDocument(), Root: r.GetRoot(), Target: targetFromPB(r.GetTarget()), StateDir: r.GetStateDir(),
		ClaimKey: r.GetClaimKey(), Files: filesFromPB(r.GetFiles()), ListFiles: r.GetListFiles(),
	})
	if len(r.GetClaimKey()) == 0 {
		plan.Claims, err = nil, withoutClaims(err)
	}
	if err != nil {
		return nil, err
	}
	if !r.GetListFiles() {
		plan = unlisted(plan)
	}
	return planToPB(plan), nil
}

// withoutClaims removes the claims of an error: a digest without a key can be found by trying values.
func withoutClaims(err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Claims == nil {
		return err
	}
	bare := *e
	bare.Claims = nil
	return &bare
}

// Apply always ends the stream with Finished: an error becomes Finished{error} with the status OK, so that a stream without
// Finished is a crash.
func (s *server) Apply(r *pb.ApplyRequest, stream grpc.ServerStreamingServer[pb.ApplyEvent]) error {
	finished, err := s.apply(r, stream)
	if ctxErr := stream.Context().Err(); ctxErr != nil && err != nil {
		return toStatus(ctxErr)
	}
	if err != nil {
		finished.Error = AsError(err)
	}
	if err := stream.Send(eventToPB(finished)); err != nil {
		return fmt.Errorf("send finished: %w", err)
	}
	return nil
}

func (s *server) apply(
	r *pb.ApplyRequest, stream grpc.ServerStreamingServer[pb.ApplyEvent],
) (finished Finished, err error) {
	defer recovered(&err)
	return s.impl.Apply(stream.Context(), Request{
		Document: r.GetDocument(), Root: r.GetRoot(), Target: targetFromPB(r.GetTarget()), StateDir: r.GetStateDir(),
		TimeLeft: max(0, r.GetTimeLeft().AsDuration()),
	}, int(r.GetLimit()), func(e Event) error {
		if _, ok := e.(Finished); ok {
			return errors.New("finished is returned, not sent")
		}
		return stream.Send(eventToPB(e))
	})
}

func (s *server) Stop(ctx context.Context, _ *pb.StopRequest) (answer *pb.StopResponse, err error) {
	defer encode(&err)
	defer recovered(&err)
	if err := s.impl.Stop(ctx); err != nil {
		return nil, err
	}
	return &pb.StopResponse{}, nil
}

// encode turns an error into a gRPC status.
func encode(err *error) { *err = toStatus(*err) }

// recovered turns a panic into an Internal error with the stack in its detail, but without the value of the panic, which may
// contain a secret.
func recovered(err *error) {
	if cause := recover(); cause != nil {
		*err = &Error{Code: CodeInternal, Message: fmt.Sprintf("the plugin panicked (%T)", cause), Detail: calls()}
	}
}

// calls returns the stack of a panic without arguments: functions with file and line, innermost first.
func calls() string {
	const most = 64
	callers := make([]uintptr, most)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	var text strings.Builder
	for {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic": // the frames before it belong to this package
			text.Reset()
		case frame.Function != "":
			fmt.Fprintf(&text, "%s\n\t%s:%d\n", frame.Function, frame.File, frame.Line)
		}
		if !more {
			return text.String()
		}
	}
}
