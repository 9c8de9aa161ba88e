// Command next is a plugin of a later day: in each message and enumeration it says something that this release does not
// know. Its provider's name, the last part of the binary's name, says what comes on top of that.
//
// It serves the kind Noop of example.com/v1 and writes the files that spec.touch names below the image root.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/pluginv1/pb"
)

// later is the number of every field and every value of an enumeration that is added on a later day.
const later = 1000

func main() {
	p := &adapter{server: &server{name: provider()}}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: launch.Handshake(),
		VersionedPlugins: map[int]plugin.PluginSet{
			pluginv1.ProtocolVersion: {launch.PluginName: p}, pluginv1.ProtocolVersion + 1: {launch.PluginName: p},
		},
		Logger: hclog.NewNullLogger(), GRPCServer: plugin.DefaultGRPCServer,
	})
}

// provider is the last part of the binary's name.
func provider() string {
	name := filepath.Base(os.Args[0])
	return name[strings.LastIndex(name, "-plugin-")+len("-plugin-"):]
}

// more adds a field that is not known to a message, and returns it.
func more[M proto.Message](m M) M {
	unknown := protowire.AppendTag(m.ProtoReflect().GetUnknown(), later, protowire.BytesType)
	m.ProtoReflect().SetUnknown(protowire.AppendString(unknown, "of a later day"))
	return m
}

type adapter struct {
	plugin.NetRPCUnsupportedPlugin
	server *server
}

func (a *adapter) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error { //nolint:unparam // go-plugin's interface
	pb.RegisterPluginServer(s, a.server)
	pb.RegisterConfiguratorServer(s, a.server)
	return nil
}

func (*adapter) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("next is no host")
}

type server struct {
	pb.UnimplementedPluginServer
	pb.UnimplementedConfiguratorServer
	name string
}

func (s *server) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	kind := more(&pb.Kind{ApiVersion: "example.com/v1", Kind: "Noop", Phase: pb.Phase_PHASE_PREPARATION})
	out := more(&pb.DescribeResponse{
		Name: s.name, Version: "9.0.0", Fitness: pb.Fitness_FITNESS_INSTALLED, FitnessReason: "it fits",
		Capabilities: []string{"of-a-later-day"},
		Kinds:        []*pb.Kind{kind, more(&pb.Kind{ApiVersion: "example.com/v9", Kind: "Later", Phase: later})},
	})
	switch s.name {
	case "fitness":
		out.Fitness = later
	case "phase":
		kind.Phase = later
	}
	return out, nil
}

// spec is the script of a document.
type spec struct {
	Touch []string `json:"touch"`
	// Fail makes plan or apply fail with a code of a later day.
	Fail string `json:"fail"`
	// Reboot makes every change ask for a reboot of a later day.
	Reboot bool `json:"reboot"`
}

func plan(doc []byte, root string) (spec, []*pb.Change, error) {
	var d struct {
		Spec spec `json:"spec"`
	}
	if err := json.Unmarshal(doc, &d); err != nil {
		return d.Spec, nil, status.Error(codes.Internal, "the document is not JSON")
	}
	var out []*pb.Change
	for _, name := range d.Spec.Touch {
		if _, err := os.Lstat(filepath.Join(root, name)); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		c := more(&pb.Change{Id: name, Summary: "write " + name})
		if d.Spec.Reboot {
			c.Reboot = later
		}
		out = append(out, c)
	}
	return d.Spec, out, nil
}

func failure() *pb.ErrorDetail {
	return more(&pb.ErrorDetail{Code: later, Message: "a code of a later day"})
}

func (s *server) Plan(_ context.Context, r *pb.PlanRequest) (*pb.PlanResponse, error) {
	want, changes, err := plan(r.GetDocument(), r.GetRoot())
	if err != nil {
		return nil, err
	}
	if want.Fail == "plan" {
		s, err := status.New(codes.FailedPrecondition, "a code of a later day").WithDetails(failure())
		if err != nil {
			return nil, err
		}
		return nil, s.Err()
	}
	return more(&pb.PlanResponse{Changes: changes}), nil
}

func (s *server) Apply(r *pb.ApplyRequest, out grpc.ServerStreamingServer[pb.ApplyEvent]) error {
	want, changes, err := plan(r.GetDocument(), r.GetRoot())
	if err != nil {
		return err
	}
	finished := more(&pb.Finished{})
	for _, c := range changes {
		reboot := pb.Reboot_REBOOT_NONE
		if want.Reboot {
			reboot = later
		}
		// The second is an event of a later day: none that is known, and one that is not.
		for _, e := range []*pb.ApplyEvent{
			{Event: &pb.ApplyEvent_Started{Started: more(&pb.Started{Change: c})}},
			{},
			{Event: &pb.ApplyEvent_Progress{Progress: more(&pb.Progress{Id: c.GetId(), Message: "writing", Reboot: reboot})}},
		} {
			if err := out.Send(more(e)); err != nil {
				return err
			}
		}
		if want.Fail == "apply" {
			finished.Error = failure()
			break
		}
		if err := os.WriteFile(filepath.Join(r.GetRoot(), c.GetId()), nil, 0o644); err != nil { //nolint:gosec // an image's
			return status.Error(codes.Internal, "the file cannot be written")
		}
		if err := out.Send(more(&pb.ApplyEvent{Event: &pb.ApplyEvent_Changed{Changed: more(&pb.Changed{Id: c.GetId()})}})); err != nil {
			return err
		}
	}
	return out.Send(more(&pb.ApplyEvent{Event: &pb.ApplyEvent_Finished{Finished: finished}}))
}

func (s *server) Stop(context.Context, *pb.StopRequest) (*pb.StopResponse, error) {
	return more(&pb.StopResponse{}), nil
}
