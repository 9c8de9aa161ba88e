package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/pluginv1/pb"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// The names of binaries under which the plugin serves a Source or a KeyProvider, up to the provider.
const (
	sourcePrefix = "machineadm-remote-configuration-provider-"
	keysPrefix   = "machineadm-plugin-encryption-provider-"
)

// sourceScript is the script of a Source.
type sourceScript struct {
	// Objects are the objects, by URI. Any other URI is a Precondition with the status 404.
	Objects map[string]object `json:"objects"`
	// Reports, if set, is the file to which each received report is appended, as a line of JSON: see received.
	Reports string `json:"reports"`
	// Report is what happens at Report instead of that.
	Report reply `json:"report"`
	// NoReports leaves out the capability report.
	NoReports bool `json:"noReports"`
	// Log, if set, is the file to which each call is appended before it is served: "fetch URI" or "report URI".
	Log string `json:"log"`
}

// object is what Fetch sends.
type object struct {
	reply
	Body     string `json:"body"`
	File     string `json:"file"` // whose content is the body, if set
	Revision string `json:"revision"`
}

// keysScript is the script of a KeyProvider. NewPassphrase of a key answers with the passphrase of that URI.
type keysScript struct {
	Passphrases map[string]passphrase `json:"passphrases"` // by URI
	NoNew       bool                  `json:"noNew"`       // leaves out the capability new-passphrase
	Log         string                `json:"log"`         // as sourceScript.Log: "passphrase URI"
}

type passphrase struct {
	reply
	Value string `json:"value"`
}

// reply is what happens instead of an answer.
type reply struct {
	// Answer is crash, hang, retry, precondition, unsupported, invalid, internal, or nothing.
	Answer string `json:"answer"`
	// Until limits it: only until this file exists.
	Until string `json:"until"`
	// Status is the fact of that name of the error.
	Status string `json:"status"`
	// Delay precedes the answer, in milliseconds.
	Delay int `json:"delay"`
}

// received is a line of sourceScript.Reports.
type received struct {
	Kind     string          `json:"kind"` // of the document
	URI      string          `json:"uri"`
	Sequence uint64          `json:"sequence"`
	Report   json.RawMessage `json:"report"`
}

func (r reply) give(ctx context.Context) error {
	if r.Until != "" && exists("", r.Until) {
		return nil
	}
	select {
	case <-time.After(time.Duration(r.Delay) * time.Millisecond):
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
	code, known := map[string]pb.Code{
		"retry": pb.Code_CODE_RETRY, "precondition": pb.Code_CODE_PRECONDITION, "unsupported": pb.Code_CODE_UNSUPPORTED,
		"invalid": pb.Code_CODE_INVALID_CONFIG, "internal": pb.Code_CODE_INTERNAL,
	}[r.Answer]
	switch {
	case r.Answer == "":
		return nil
	case r.Answer == "crash":
		os.Exit(3)
	case r.Answer == "hang":
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	case !known:
		return status.Error(codes.Internal, "noop: the script has an unknown answer")
	}
	detail := &pb.ErrorDetail{Code: code, Message: "noop says " + r.Answer, Hint: "ask noop for something else"}
	if r.Status != "" {
		detail.Facts = map[string]string{pluginv1.FactStatus: r.Status}
	}
	switch code {
	case pb.Code_CODE_RETRY:
		detail.RetryAfter = durationpb.New(time.Millisecond)
	case pb.Code_CODE_INVALID_CONFIG:
		detail.Violations = []*pb.Violation{{Field: "spec.uri", Message: "noop does not like it", Hint: "use another value"}}
	}
	s, err := status.New(codes.Unknown, "noop").WithDetails(detail)
	if err != nil {
		return err
	}
	return s.Err()
}

// reference is a document that a Source or a KeyProvider serves.
type reference struct {
	Kind string `json:"kind"`
	Spec struct {
		URI           string                `json:"uri"`
		PassphraseURI string                `json:"passphraseURI"`
		Report        v1alpha1.RemoteReport `json:"report"`
	} `json:"spec"`
}

func refers(doc []byte) (out reference, err error) {
	if json.Unmarshal(doc, &out) != nil {
		err = status.Error(codes.Internal, "noop: the document is not JSON")
	}
	return out, err
}

// appendLine appends a line to a file in one write; "" for no file.
func appendLine(path, line string) error {
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if _, err := file.WriteString(line + "\n"); err != nil {
		return err
	}
	return file.Close()
}

type sourceServer struct {
	pb.UnimplementedSourceServer
	script sourceScript
}

func (s *sourceServer) Fetch(r *pb.FetchRequest, out grpc.ServerStreamingServer[pb.Chunk]) error {
	d, err := refers(r.GetDocument())
	if err != nil || r.GetValidateOnly() {
		return err
	}
	if err := appendLine(s.script.Log, "fetch "+d.Spec.URI); err != nil {
		return err
	}
	o, found := s.script.Objects[d.Spec.URI]
	if !found {
		o.reply = reply{Answer: "precondition", Status: "404"}
	}
	if err := o.give(out.Context()); err != nil {
		return err
	}
	body := []byte(o.Body)
	if o.File != "" {
		if body, err = os.ReadFile(o.File); err != nil {
			return err
		}
	}
	if err := out.Send(&pb.Chunk{Part: &pb.Chunk_Begin{Begin: &pb.Begin{Revision: o.Revision}}}); err != nil {
		return err
	}
	for len(body) > 0 {
		n := min(len(body), pluginv1.MaxChunkBytes)
		if err := out.Send(&pb.Chunk{Part: &pb.Chunk_Data{Data: body[:n]}}); err != nil {
			return err
		}
		body = body[n:]
	}
	return nil
}

func (s *sourceServer) Report(ctx context.Context, r *pb.ReportRequest) (*pb.ReportResponse, error) {
	d, err := refers(r.GetDocument())
	if err != nil || r.GetValidateOnly() {
		return &pb.ReportResponse{}, err
	}
	line := received{Kind: d.Kind, URI: d.Spec.URI, Sequence: r.GetSequence(), Report: r.GetReport()}
	if d.Spec.Report.URI != "" {
		line.URI = d.Spec.Report.URI
	}
	if err := appendLine(s.script.Log, "report "+line.URI); err != nil {
		return nil, err
	}
	if err := s.script.Report.give(ctx); err != nil {
		return nil, err
	}
	data, err := json.Marshal(line)
	if err != nil {
		return nil, err
	}
	return &pb.ReportResponse{}, appendLine(s.script.Reports, string(data))
}

type keysServer struct {
	pb.UnimplementedKeyProviderServer
	script keysScript
}

func (s *keysServer) Passphrase(ctx context.Context, r *pb.PassphraseRequest) (*pb.PassphraseResponse, error) {
	d, err := refers(r.GetDocument())
	if err != nil || r.GetValidateOnly() {
		return &pb.PassphraseResponse{}, err
	}
	value, err := s.find(ctx, d.Spec.PassphraseURI)
	return &pb.PassphraseResponse{Passphrase: value}, err
}

func (s *keysServer) NewPassphrase(ctx context.Context, r *pb.NewPassphraseRequest) (*pb.NewPassphraseResponse, error) {
	value, err := s.find(ctx, r.GetKey())
	return &pb.NewPassphraseResponse{Passphrase: value, Uri: r.GetKey()}, err
}

func (s *keysServer) find(ctx context.Context, uri string) ([]byte, error) {
	if err := appendLine(s.script.Log, "passphrase "+uri); err != nil {
		return nil, err
	}
	p, found := s.script.Passphrases[uri]
	if !found {
		p.reply = reply{Answer: "precondition", Status: "404"}
	}
	return []byte(p.Value), p.give(ctx)
}

// kindsOf returns the kinds and capabilities that the plugin serves under the name of a binary.
func (s script) kindsOf(binary string) (kinds []kind, capabilities []string) {
	ours := func(name string) kind { return kind{APIVersion: v1alpha1.APIVersion, Kind: name} }
	switch {
	case strings.HasPrefix(binary, sourcePrefix):
		kinds = []kind{ours(v1alpha1.KindRemoteConfig)}
		if !s.Source.NoReports {
			kinds, capabilities = append(kinds, ours(v1alpha1.KindReportTarget)), []string{pluginv1.CapabilityReport}
		}
	case strings.HasPrefix(binary, keysPrefix):
		kinds = []kind{ours(v1alpha1.KindEncryptedConfig)}
		if !s.Keys.NoNew {
			capabilities = []string{pluginv1.CapabilityNewPassphrase}
		}
	default:
		kinds = []kind{{APIVersion: "example.com/v1", Kind: "Noop"}}
	}
	return kinds, capabilities
}

// register serves what the binary is named for.
func (s *server) register(to grpc.ServiceRegistrar) {
	pb.RegisterPluginServer(to, s)
	switch binary := program(); {
	case strings.HasPrefix(binary, sourcePrefix):
		pb.RegisterSourceServer(to, &sourceServer{script: s.script.Source})
	case strings.HasPrefix(binary, keysPrefix):
		pb.RegisterKeyProviderServer(to, &keysServer{script: s.script.Keys})
	default:
		pb.RegisterConfiguratorServer(to, s)
	}
}
