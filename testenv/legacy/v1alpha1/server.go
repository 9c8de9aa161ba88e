package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"example.com/noop-v1alpha1/pb"
)

// spec is what a document tells the plugin to do.
type spec struct {
	// Plan is how Plan answers: a code (invalid, unsupported, precondition, retry, internal), plain (an error without
	// details), or nothing: the files of Touch that are missing.
	Plan string `json:"plan"`
	// PlanUntil makes Plan answer like Plan only until this file exists in the root.
	PlanUntil string `json:"planUntil"`
	// Field is the field path of a violation and of Warn.
	Field string `json:"field"`
	// Touch are files below the root, each one change that writes it with Content.
	Touch   []string `json:"touch"`
	Content string   `json:"content"`
	// Live marks every change as impossible in an image root.
	Live bool `json:"live"`
	// Reboot is asked for by each change: AfterRun or BeforeNext.
	Reboot string `json:"reboot"`
	// Apply fails after its first change was started: a code as in Plan, or hang, which waits for Stop.
	Apply string `json:"apply"`
	// ApplyUntil makes Apply fail only until this file exists in the root.
	ApplyUntil string `json:"applyUntil"`
	// Warn is sent as a warning.
	Warn string `json:"warn"`
}

type adapter struct {
	plugin.NetRPCUnsupportedPlugin
	server *server
}

func (a *adapter) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	pb.RegisterPluginServer(s, a.server)
	pb.RegisterConfiguratorServer(s, a.server)
	return nil
}

func (a *adapter) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("noop is no host")
}

type server struct {
	pb.UnimplementedPluginServer
	pb.UnimplementedConfiguratorServer
	name string
	stop chan struct{}
}

func (s *server) Describe(_ context.Context, r *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	out := &pb.DescribeResponse{
		Name: s.name, Version: "0.0.0-noop", Fitness: pb.Fitness_FITNESS_INSTALLED, FitnessReason: "noop fits everywhere",
		Kinds:         []*pb.Kind{{ApiVersion: "example.com/v1", Kind: "Noop", Phase: pb.Phase_PHASE_PREPARATION, SecretFields: []string{"spec.token"}}},
		Distributions: []string{"debian"},
	}
	if r.GetTarget().GetOs() != "linux" {
		out.Fitness, out.FitnessReason = pb.Fitness_FITNESS_UNSUPPORTED, "noop fits Linux"
	}
	return out, nil
}

func decode(doc []byte) (spec, error) {
	var d struct {
		Spec spec `json:"spec"`
	}
	if err := json.Unmarshal(doc, &d); err != nil {
		return d.Spec, status.Error(codes.Internal, "noop: the document is not JSON")
	}
	return d.Spec, nil
}

func (s *server) Plan(_ context.Context, r *pb.PlanRequest) (*pb.PlanResponse, error) {
	changes, want, err := plan(r.GetDocument(), r.GetRoot(), r.GetTarget())
	if err != nil {
		return nil, err
	}
	out := &pb.PlanResponse{Changes: changes, Claims: claims(r.GetClaimKey(), want)}
	if want.Warn != "" {
		out.Warnings = []*pb.Warning{{Field: want.Field, Message: want.Warn}}
	}
	return out, nil
}

// plan is what Plan and Apply have in common.
func plan(doc []byte, root string, target *pb.Target) ([]*pb.Change, spec, error) {
	want, err := decode(doc)
	if err != nil {
		return nil, want, err
	}
	if target.GetOs() != "linux" {
		return nil, want, answer("unsupported", "")
	}
	if want.Plan != "" && (want.PlanUntil == "" || !exists(root, want.PlanUntil)) {
		return nil, want, answer(want.Plan, want.Field)
	}
	return missing(root, want), want, nil
}

// answer is what Plan says instead of a plan.
func answer(code, field string) error {
	detail := failure(code, field)
	if detail == nil {
		return status.Error(codes.FailedPrecondition, "noop: no details")
	}
	s, err := status.New(codes.Unknown, "noop").WithDetails(detail)
	if err != nil {
		return err
	}
	return s.Err()
}

// failure is the error of this code; nil where it is none.
func failure(code, field string) *pb.ErrorDetail {
	known, ok := map[string]pb.Code{
		"invalid": pb.Code_CODE_INVALID_CONFIG, "unsupported": pb.Code_CODE_UNSUPPORTED,
		"precondition": pb.Code_CODE_PRECONDITION, "retry": pb.Code_CODE_RETRY, "internal": pb.Code_CODE_INTERNAL,
	}[code]
	if !ok {
		return nil
	}
	out := &pb.ErrorDetail{
		Code: known, Message: "noop says " + code, Hint: "ask noop for something else", Detail: "raw words of noop",
		Final: code == "precondition", Facts: map[string]string{"says": code},
	}
	if field != "" {
		out.Violations = []*pb.Violation{{Field: field, Message: "noop does not like it", Hint: "use another value"}}
	}
	if code == "retry" {
		out.RetryAfter = durationpb.New(time.Millisecond)
	}
	return out
}

// inRoot is a file of the image, or of the live machine when there is none.
func inRoot(root, name string) string { return filepath.Join("/", root, name) }

func exists(root, name string) bool {
	_, err := os.Lstat(inRoot(root, name))
	return !errors.Is(err, fs.ErrNotExist)
}

func missing(root string, want spec) []*pb.Change {
	var out []*pb.Change
	for _, name := range want.Touch {
		data, err := os.ReadFile(inRoot(root, name))
		if err == nil && string(data) == want.Content {
			continue
		}
		out = append(out, &pb.Change{
			Id: "file:" + name, Summary: "write " + name, Diff: "+" + want.Content, NeedsLive: want.Live,
			Reboot: map[string]pb.Reboot{"AfterRun": pb.Reboot_REBOOT_AFTER_RUN, "BeforeNext": pb.Reboot_REBOOT_BEFORE_NEXT}[want.Reboot],
		})
	}
	return out
}

// claims is what the document owns, whether it is there or not.
func claims(key []byte, want spec) []*pb.Claim {
	var out []*pb.Claim
	for _, name := range want.Touch {
		if len(key) == 0 {
			return nil
		}
		sum := hmac.New(sha256.New, key)
		for _, part := range []string{want.Content, "0644", ""} {
			sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
			sum.Write([]byte(part))
		}
		out = append(out, &pb.Claim{Id: "file:" + filepath.Join("/", name), Digest: sum.Sum(nil), Field: "spec.touch"})
	}
	return out
}

func (s *server) Stop(context.Context, *pb.StopRequest) (*pb.StopResponse, error) {
	select {
	case s.stop <- struct{}{}:
	default:
	}
	return &pb.StopResponse{}, nil
}
