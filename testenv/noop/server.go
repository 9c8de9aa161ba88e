package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/pluginv1/pb"
)

// spec is the script of a document.
type spec struct {
	// Plan is the response of Plan: invalid, unsupported, precondition, retry, internal, plain (an error without details),
	// crash, hang, big (5 MiB), panic, or nothing: the files of Touch that are missing.
	Plan string `json:"plan"`
	// PlanUntil limits the effect of Plan: only until this file exists in the root.
	PlanUntil string `json:"planUntil"`
	// Field is the field path of Plan's violation, and Needs what it needs.
	Field string `json:"field"`
	Needs string `json:"needs"`
	// Final and Facts are added to an error of Plan or of Apply.
	Final bool              `json:"final"`
	Facts map[string]string `json:"facts"`
	// Claims are what Plan claims: the desired value of each thing, by its ID.
	Claims map[string]string `json:"claims"`
	// ClaimEarly sends the claims with an error of Plan as well.
	ClaimEarly bool `json:"claimEarly"`
	// Touch are files below the root, each one change that writes it with Content.
	Touch   []string `json:"touch"`
	Content string   `json:"content"`
	// Live marks every change as impossible in an image root.
	Live bool `json:"live"`
	// Reboot is requested by each change: AfterRun or BeforeNext.
	Reboot string `json:"reboot"`
	// Apply breaks Apply after its first change was started: crash, hang, hangForever (also after Stop), retry, fail,
	// two (finished twice), after (an event after finished), none (no finished), events (1,000 events), big,
	// unstarted (ends a change that was not started).
	Apply string `json:"apply"`
	// Run is of sh, and runs in the first change; INIT is the init system of the target.
	Run string `json:"run"`
	// ApplyUntil makes Apply break only until this file exists in the root.
	ApplyUntil string `json:"applyUntil"`
	// Warn is sent as a warning.
	Warn string `json:"warn"`
	// Say is written to stderr.
	Say string `json:"say"`
}

type adapter struct {
	plugin.NetRPCUnsupportedPlugin
	server *server
}

func (a *adapter) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error { //nolint:unparam // go-plugin's interface
	a.server.register(s)
	return nil
}

func (a *adapter) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("noop is no host")
}

type server struct {
	pb.UnimplementedPluginServer
	pb.UnimplementedConfiguratorServer
	script script
	name   string
	stop   chan struct{}
}

func (s *server) Describe(ctx context.Context, r *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	switch s.script.Describe {
	case "crash":
		os.Exit(3)
	case "hang":
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	case "internal":
		return nil, status.Error(codes.Internal, "noop: an internal error")
	}
	out := &pb.DescribeResponse{Name: s.name, Version: "0.0.0-noop", FitnessReason: s.script.Reason, Distributions: s.script.Distributions}
	out.Fitness = map[string]pb.Fitness{
		"": pb.Fitness_FITNESS_INSTALLED, "unsupported": pb.Fitness_FITNESS_UNSUPPORTED, "absent": pb.Fitness_FITNESS_ABSENT,
		"installed": pb.Fitness_FITNESS_INSTALLED, "active": pb.Fitness_FITNESS_ACTIVE,
	}[s.script.Fitness]
	kinds, capabilities := s.script.kindsOf(program())
	if len(s.script.Kinds) > 0 {
		kinds = s.script.Kinds
	}
	out.Capabilities = capabilities
	for _, k := range kinds {
		phase := pb.Phase_PHASE_PREPARATION
		if k.Phase == "provisioning" {
			phase = pb.Phase_PHASE_PROVISIONING
		}
		served := &pb.Kind{ApiVersion: k.APIVersion, Kind: k.Kind, Phase: phase}
		if k.Provides != nil {
			served.Provides = &pb.Provides{Ids: *k.Provides}
		}
		if r.GetJsonSchema() {
			served.JsonSchema = k.Schema
		}
		out.Kinds = append(out.Kinds, served)
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
	if d.Spec.Say != "" {
		fmt.Fprintln(os.NewFile(2, "stderr"), d.Spec.Say) // the real one: go-plugin has redirected os.Stderr
	}
	return d.Spec, nil
}

func (s *server) Plan(ctx context.Context, r *pb.PlanRequest) (*pb.PlanResponse, error) {
	want, err := decode(r.GetDocument())
	if err != nil {
		return nil, err
	}
	if want.PlanUntil == "" || !exists(r.GetRoot(), want.PlanUntil) {
		if err := answer(ctx, want, r.GetClaimKey()); err != nil {
			return nil, err
		}
	}
	out := &pb.PlanResponse{Changes: missing(r.GetRoot(), want), Claims: claims(want, r.GetClaimKey())}
	if want.Warn != "" {
		out.Warnings = []*pb.Warning{{Field: want.Field, Message: want.Warn}}
	}
	if want.Plan == "big" {
		out.Changes = append(out.Changes, &pb.Change{Id: "big", Summary: "a big answer", Diff: strings.Repeat("x", 5<<20)})
	}
	return out, nil
}

// answer is the response of Plan instead of a plan.
func answer(ctx context.Context, want spec, claimKey []byte) error {
	detail := &pb.ErrorDetail{Message: "noop says " + want.Plan, Hint: "ask noop for something else", Final: want.Final, Facts: want.Facts}
	if want.ClaimEarly {
		detail.Claims = claims(want, claimKey)
	}
	if want.Field+want.Needs != "" {
		detail.Violations = []*pb.Violation{{Field: want.Field, Message: "noop does not like it", Hint: "use another value", Needs: want.Needs}}
	}
	switch want.Plan {
	case "crash":
		os.Exit(3)
	case "hang":
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	case "panic":
		panic("noop panics")
	case "plain":
		return status.Error(codes.FailedPrecondition, "noop: no details")
	case "invalid":
		detail.Code = pb.Code_CODE_INVALID_CONFIG
	case "unsupported":
		detail.Code = pb.Code_CODE_UNSUPPORTED
	case "precondition":
		detail.Code = pb.Code_CODE_PRECONDITION
	case "retry":
		detail.Code, detail.RetryAfter = pb.Code_CODE_RETRY, durationpb.New(time.Millisecond)
	case "internal":
		detail.Code = pb.Code_CODE_INTERNAL
	default:
		return nil
	}
	s, err := status.New(codes.Unknown, "noop").WithDetails(detail)
	if err != nil {
		return err
	}
	return s.Err()
}

// claims returns the claims of a document.
func claims(want spec, key []byte) []*pb.Claim {
	var out []*pb.Claim
	for _, id := range slices.Sorted(maps.Keys(want.Claims)) {
		if len(key) > 0 {
			c := pluginv1.NewClaim(key, id, "spec.claims", []byte(want.Claims[id]))
			out = append(out, &pb.Claim{Id: c.ID, Digest: c.Digest, Field: c.Field})
		}
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
			Id: "file:" + name, Summary: "write " + name, NeedsLive: want.Live,
			Reboot: map[string]pb.Reboot{"AfterRun": pb.Reboot_REBOOT_AFTER_RUN, "BeforeNext": pb.Reboot_REBOOT_BEFORE_NEXT}[want.Reboot],
		})
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
