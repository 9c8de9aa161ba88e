package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/machineadm/machineadm/contract/pluginv1/pb"
)

type stream = grpc.ServerStreamingServer[pb.ApplyEvent]

func (s *server) Apply(r *pb.ApplyRequest, out stream) error {
	want, err := decode(r.GetDocument())
	if err != nil {
		return err
	}
	if want.Warn != "" {
		if err := out.Send(&pb.ApplyEvent{Event: &pb.ApplyEvent_Warning{Warning: &pb.Warning{Field: want.Field, Message: want.Warn}}}); err != nil {
			return err
		}
	}
	var deferred []*pb.Change
	for n, c := range missing(r.GetRoot(), want) {
		if r.GetRoot() != "" && c.GetNeedsLive() {
			deferred = append(deferred, c)
			continue
		}
		if s.stopped() || (r.GetLimit() > 0 && n >= int(r.GetLimit())) {
			return finish(out, &pb.Finished{Stopped: true})
		}
		if err := out.Send(&pb.ApplyEvent{Event: &pb.ApplyEvent_Started{Started: &pb.Started{Change: c}}}); err != nil {
			return err
		}
		if n == 0 && (want.ApplyUntil == "" || !exists(r.GetRoot(), want.ApplyUntil)) {
			if done, err := s.misbehave(want, c.GetId(), out); done || err != nil {
				return err
			}
		}
		if n == 0 && want.Run != "" {
			if err := run(out.Context(), want.Run, r.GetTarget().GetInit()); err != nil {
				return finish(out, &pb.Finished{Error: &pb.ErrorDetail{Code: pb.Code_CODE_INTERNAL, Message: err.Error()}})
			}
		}
		if err := touch(inRoot(r.GetRoot(), strings.TrimPrefix(c.GetId(), "file:")), want.Content); err != nil {
			return finish(out, &pb.Finished{Error: &pb.ErrorDetail{Code: pb.Code_CODE_INTERNAL, Message: err.Error()}})
		}
		if err := out.Send(&pb.ApplyEvent{Event: &pb.ApplyEvent_Changed{Changed: &pb.Changed{Id: c.GetId()}}}); err != nil {
			return err
		}
	}
	return finish(out, &pb.Finished{Deferred: deferred})
}

func run(ctx context.Context, script, init string) error {
	c := exec.CommandContext(ctx, "sh", "-ec", script)
	c.Env = append(os.Environ(), "INIT="+init)
	out, err := c.Output()
	if err != nil {
		return fmt.Errorf("sh: %w: %s", err, out)
	}
	return nil
}

func touch(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o644)
}

func finish(out stream, f *pb.Finished) error {
	return out.Send(&pb.ApplyEvent{Event: &pb.ApplyEvent_Finished{Finished: f}})
}

func (s *server) stopped() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// misbehave runs the document's script in the middle of a change. Done means that Apply ends here.
func (s *server) misbehave(want spec, id string, out stream) (done bool, err error) {
	fail := func(code pb.Code) (bool, error) {
		return true, finish(out, &pb.Finished{Error: &pb.ErrorDetail{
			Code: code, Message: "noop says " + want.Apply, Hint: "ask noop for something else",
			Detail: "raw output of noop", RetryAfter: durationpb.New(time.Millisecond), Facts: want.Facts,
		}})
	}
	switch want.Apply {
	case "crash":
		fmt.Fprintln(os.NewFile(2, "stderr"), "noop: last words")
		os.Exit(3)
	case "hang": // until Stop; then the change is finished, as the contract requires
		select {
		case <-s.stop:
			s.stop <- struct{}{}
		case <-out.Context().Done():
			return true, out.Context().Err()
		}
	case "hangForever":
		select {}
	case "retry":
		return fail(pb.Code_CODE_RETRY)
	case "fail":
		return fail(pb.Code_CODE_PRECONDITION)
	case "none":
		return true, nil
	case "two":
		if err := out.Send(&pb.ApplyEvent{Event: &pb.ApplyEvent_Changed{Changed: &pb.Changed{Id: id}}}); err != nil {
			return true, err
		}
		if err := finish(out, &pb.Finished{}); err != nil {
			return true, err
		}
		return true, finish(out, &pb.Finished{})
	case "after":
		if err := out.Send(&pb.ApplyEvent{Event: &pb.ApplyEvent_Changed{Changed: &pb.Changed{Id: id}}}); err != nil {
			return true, err
		}
		if err := finish(out, &pb.Finished{}); err != nil {
			return true, err
		}
		return true, out.Send(&pb.ApplyEvent{Event: &pb.ApplyEvent_Progress{Progress: &pb.Progress{Message: "late"}}})
	case "unstarted":
		return false, out.Send(&pb.ApplyEvent{Event: &pb.ApplyEvent_Changed{Changed: &pb.Changed{Id: "never-started"}}})
	case "events":
		for i := range 1000 {
			if err := out.Send(&pb.ApplyEvent{Event: &pb.ApplyEvent_Progress{Progress: &pb.Progress{Message: fmt.Sprintf("event %d", i)}}}); err != nil {
				return true, err
			}
		}
	case "big":
		return false, out.Send(&pb.ApplyEvent{Event: &pb.ApplyEvent_Progress{Progress: &pb.Progress{Message: strings.Repeat("x", 5<<20)}}})
	}
	return false, nil
}
