package main

import (
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"example.com/noop-v1alpha1/pb"
)

type stream = grpc.ServerStreamingServer[pb.ApplyEvent]

func (s *server) Apply(r *pb.ApplyRequest, out stream) error {
	select { // a Stop of before is not meant for this one
	case <-s.stop:
	default:
	}
	changes, want, err := plan(r.GetDocument(), r.GetRoot(), r.GetTarget())
	if err != nil {
		return finish(out, &pb.Finished{Error: detailOf(err)})
	}
	if want.Warn != "" {
		if err := out.Send(&pb.ApplyEvent{Event: &pb.ApplyEvent_Warning{Warning: &pb.Warning{Field: want.Field, Message: want.Warn}}}); err != nil {
			return err
		}
	}
	var deferred []*pb.Change
	for n, c := range changes {
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
			if detail := failure(want.Apply, want.Field); detail != nil {
				return finish(out, &pb.Finished{Error: detail})
			}
			if want.Apply == "hang" && !s.hang(out) {
				return out.Context().Err()
			}
		}
		if err := out.Send(&pb.ApplyEvent{Event: &pb.ApplyEvent_Progress{Progress: &pb.Progress{Id: c.GetId(), Message: "writing"}}}); err != nil {
			return err
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

// detailOf is what Plan would have said.
func detailOf(err error) *pb.ErrorDetail {
	for _, d := range status.Convert(err).Details() {
		if detail, ok := d.(*pb.ErrorDetail); ok {
			return detail
		}
	}
	return &pb.ErrorDetail{Code: pb.Code_CODE_INTERNAL, Message: status.Convert(err).Message()}
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

// hang waits for Stop, and says whether it came.
func (s *server) hang(out stream) bool {
	select {
	case <-s.stop:
		s.stop <- struct{}{}
		return true
	case <-out.Context().Done():
		return false
	}
}

func (s *server) stopped() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}
