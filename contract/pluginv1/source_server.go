package pluginv1

import (
	"context"

	"google.golang.org/grpc"

	"github.com/machineadm/machineadm/contract/pluginv1/pb"
)

type sourceServer struct {
	pb.UnimplementedSourceServer
	impl Source
}

func (s *sourceServer) Fetch(r *pb.FetchRequest, stream grpc.ServerStreamingServer[pb.Chunk]) (err error) {
	defer encode(&err)
	defer recovered(&err)
	return s.impl.Fetch(stream.Context(), FetchRequest{
		Document: r.GetDocument(), Target: targetFromPB(r.GetTarget()), MaxBytes: int64(min(r.GetMaxBytes(), 1<<62)),
		RetryFor: max(0, r.GetRetryFor().AsDuration()), ValidateOnly: r.GetValidateOnly(),
	}, func(c Chunk) error {
		if c.Begin {
			return stream.Send(&pb.Chunk{Part: &pb.Chunk_Begin{Begin: &pb.Begin{Revision: clean(c.Revision)}}})
		}
		return stream.Send(&pb.Chunk{Part: &pb.Chunk_Data{Data: c.Data}})
	})
}

func (s *sourceServer) Report(ctx context.Context, r *pb.ReportRequest) (answer *pb.ReportResponse, err error) {
	defer encode(&err)
	defer recovered(&err)
	if err := s.impl.Report(ctx, ReportRequest{
		Document: r.GetDocument(), Target: targetFromPB(r.GetTarget()), Report: r.GetReport(), Sequence: r.GetSequence(),
		ValidateOnly: r.GetValidateOnly(),
	}); err != nil {
		return nil, err
	}
	return &pb.ReportResponse{}, nil
}

type keyServer struct {
	pb.UnimplementedKeyProviderServer
	impl KeyProvider
}

func (s *keyServer) Passphrase(ctx context.Context, r *pb.PassphraseRequest) (answer *pb.PassphraseResponse, err error) {
	defer encode(&err)
	defer recovered(&err)
	passphrase, err := s.impl.Passphrase(ctx, PassphraseRequest{
		Document: r.GetDocument(), Target: targetFromPB(r.GetTarget()),
		RetryFor: max(0, r.GetRetryFor().AsDuration()), ValidateOnly: r.GetValidateOnly(),
	})
	if err != nil {
		return nil, err
	}
	return &pb.PassphraseResponse{Passphrase: passphrase}, nil
}

func (s *keyServer) NewPassphrase(
	ctx context.Context, r *pb.NewPassphraseRequest,
) (answer *pb.NewPassphraseResponse, err error) {
	defer encode(&err)
	defer recovered(&err)
	made, err := s.impl.NewPassphrase(ctx, NewPassphraseRequest{
		Key: r.GetKey(), Target: targetFromPB(r.GetTarget()), ProviderConfig: r.GetProviderConfig(),
	})
	if err != nil {
		return nil, err
	}
	return &pb.NewPassphraseResponse{Passphrase: made.Passphrase, Uri: clean(made.URI)}, nil
}
