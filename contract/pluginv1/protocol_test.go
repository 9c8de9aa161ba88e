package pluginv1_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/pluginv1/pb"
)

// TestStatusWithoutDetail: gRPC's own codes decide nothing, only ErrorDetail does.
func TestStatusWithoutDetail(t *testing.T) {
	t.Parallel()
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			client := serveRaw(t, &raw{plan: status.Error(code, "a foreign text")})
			_, err := client.Plan(t.Context(), pluginv1.Request{})
			if code == codes.Unavailable { // what a lost connection looks like
				if !errors.Is(err, pluginv1.ErrCrashed) {
					t.Errorf("error %v, want ErrCrashed", err)
				}
				return
			}
			e, ok := errors.AsType[*pluginv1.Error](err)
			if !ok || e.Code != pluginv1.CodeInternal || strings.Contains(e.Message, "a foreign text") {
				t.Errorf("error %#v, want Internal without that text", err)
			}
		})
	}
}

// TestUnknownCode: an unknown code is Internal, also with its detail.
func TestUnknownCode(t *testing.T) {
	t.Parallel()
	s, err := status.New(codes.Unknown, "x").WithDetails(&pb.ErrorDetail{Code: 99, Message: "new"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = serveRaw(t, &raw{plan: s.Err()}).Plan(t.Context(), pluginv1.Request{})
	if e := pluginv1.AsError(err); e == nil || e.Code != pluginv1.CodeInternal || e.Message != "new" {
		t.Errorf("error %+v", e)
	}
}

func TestCallThatIsNotServed(t *testing.T) {
	t.Parallel()
	_, err := serveRaw(t, &raw{}).Describe(t.Context(), pluginv1.DescribeRequest{})
	if e := pluginv1.AsError(err); e == nil || e.Code != pluginv1.CodeInternal || !strings.Contains(e.Message, "does not serve") {
		t.Errorf("error %+v", e)
	}
}

func TestOwnContext(t *testing.T) {
	t.Parallel()
	client := serveRaw(t, &raw{apply: func(s grpc.ServerStreamingServer[pb.ApplyEvent]) error {
		<-s.Context().Done()
		return s.Context().Err()
	}})
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := client.Plan(cancelled, pluginv1.Request{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the error of the context", err)
	}
	late, cancelLate := context.WithTimeout(t.Context(), 1)
	defer cancelLate()
	if _, err := client.Apply(late, pluginv1.Request{}, 0, nothing); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the error of the context", err)
	}
}

// TestBrokenStreams: an Apply ends with exactly one finished.
func TestBrokenStreams(t *testing.T) {
	t.Parallel()
	finished := &pb.ApplyEvent{Event: &pb.ApplyEvent_Finished{Finished: &pb.Finished{}}}
	started := &pb.ApplyEvent{Event: &pb.ApplyEvent_Started{Started: &pb.Started{Change: &pb.Change{Id: "a", Summary: "do a"}}}}
	other := &pb.ApplyEvent{Event: &pb.ApplyEvent_Started{Started: &pb.Started{Change: &pb.Change{Id: "b", Summary: "do b"}}}}
	mute := &pb.ApplyEvent{Event: &pb.ApplyEvent_Started{Started: &pb.Started{Change: &pb.Change{Id: "a"}}}}
	failed := &pb.ApplyEvent{Event: &pb.ApplyEvent_Finished{Finished: &pb.Finished{Error: &pb.ErrorDetail{Message: "no"}}}}
	deferred := &pb.ApplyEvent{Event: &pb.ApplyEvent_Finished{Finished: &pb.Finished{Deferred: []*pb.Change{{Summary: "x"}}}}}
	changed := &pb.ApplyEvent{Event: &pb.ApplyEvent_Changed{Changed: &pb.Changed{Id: "a"}}}
	stopped := &pb.ApplyEvent{Event: &pb.ApplyEvent_Finished{Finished: &pb.Finished{Stopped: true}}}
	newer := &pb.ApplyEvent{}
	for name, c := range map[string]struct {
		events  []*pb.ApplyEvent
		end     error
		crashed bool
		message string // none: it is in order
	}{
		"in order":               {events: []*pb.ApplyEvent{started, changed, finished}},
		"an event of later":      {events: []*pb.ApplyEvent{newer, started, newer, changed, finished}},
		"none":                   {crashed: true},
		"no finished":            {events: []*pb.ApplyEvent{started, changed}, crashed: true},
		"two finished":           {events: []*pb.ApplyEvent{finished, finished}, message: "after finished"},
		"an event after it":      {events: []*pb.ApplyEvent{finished, changed}, message: "after finished"},
		"an unknown one after":   {events: []*pb.ApplyEvent{finished, newer}, message: "after finished"},
		"a failure after it":     {events: []*pb.ApplyEvent{finished}, end: status.Error(codes.Unknown, "x"), message: "failed the call after finished"},
		"a failure without it":   {end: status.Error(codes.Unknown, "x"), message: "the status Unknown without an ErrorDetail"},
		"cancelled by itself":    {end: status.Error(codes.Canceled, "x"), message: "the status Canceled without an ErrorDetail"},
		"lost after finished":    {events: []*pb.ApplyEvent{finished}, end: status.Error(codes.Unavailable, "x"), crashed: true},
		"lost without finished":  {events: []*pb.ApplyEvent{started, changed}, end: status.Error(codes.Unavailable, "x"), crashed: true},
		"a failed change":        {events: []*pb.ApplyEvent{started, failed}},
		"a stopped wait":         {events: []*pb.ApplyEvent{started, stopped}},
		"started twice":          {events: []*pb.ApplyEvent{started, started}, message: `(P-22): Apply sent started twice for the change "a"`},
		"made twice":             {events: []*pb.ApplyEvent{started, changed, started}, message: `(P-22): Apply sent started twice for the change "a"`},
		"two at once":            {events: []*pb.ApplyEvent{started, other}, message: `(P-22): Apply sent started for "b" before changed for "a"`},
		"changed, not started":   {events: []*pb.ApplyEvent{changed}, message: `(P-22): Apply sent changed for "a", which is not`},
		"changed twice":          {events: []*pb.ApplyEvent{started, changed, changed}, message: `(P-22): Apply sent changed for "a", which is not`},
		"never changed":          {events: []*pb.ApplyEvent{started, finished}, message: `(P-22): Apply sent finished without an error`},
		"without a summary":      {events: []*pb.ApplyEvent{mute}, message: `(P-20): Apply has the change "a" without a summary`},
		"deferred without an id": {events: []*pb.ApplyEvent{deferred}, message: "(P-20): finished has a change without an id"},
		"finished without a sum": {events: []*pb.ApplyEvent{{Event: &pb.ApplyEvent_Finished{}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := serveRaw(t, &raw{apply: func(s grpc.ServerStreamingServer[pb.ApplyEvent]) error {
				for _, e := range c.events {
					if err := s.Send(e); err != nil {
						return err
					}
				}
				return c.end
			}})
			_, err := client.Apply(t.Context(), pluginv1.Request{}, 0, nothing)
			e, internal := errors.AsType[*pluginv1.Error](err)
			switch {
			case errors.Is(err, pluginv1.ErrCrashed) != c.crashed:
				t.Errorf("error %v, want a crash: %v", err, c.crashed)
			case !c.crashed && c.message == "" && err != nil:
				t.Errorf("error %v, want none", err)
			case c.message != "" && (!internal || e.Code != pluginv1.CodeInternal || !strings.Contains(e.Message, c.message)):
				t.Errorf("error %v, want Internal with %q", err, c.message)
			}
		})
	}
}
