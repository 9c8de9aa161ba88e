package pluginv1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/machineadm/machineadm/contract/pluginv1/pb"
)

var (
	_ Source      = (*Client)(nil)
	_ KeyProvider = (*Client)(nil)
)

// Fetch implements Source. Parts against the protocol are Internal, more bytes than MaxBytes too. An error of send ends the
// call.
func (c *Client) Fetch(ctx context.Context, r FetchRequest, send func(Chunk) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.source.Fetch(ctx, &pb.FetchRequest{
		Document: r.Document, Target: targetToPB(r.Target), MaxBytes: uint64(max(0, r.MaxBytes)),
		RetryFor: durationToPB(r.RetryFor), ValidateOnly: r.ValidateOnly,
	})
	if err != nil {
		return fromStatus(ctx, "Fetch", err, nil)
	}
	parts := fetched{most: r.MaxBytes, none: r.ValidateOnly}
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return parts.end()
		}
		if err != nil {
			return fromStatus(ctx, "Fetch", err, stream.Trailer())
		}
		chunk, err := parts.take(message)
		if err != nil {
			return err
		}
		if err := send(chunk); err != nil {
			return fmt.Errorf("handle a part of the object: %w", err)
		}
	}
}

// fetched checks the parts of an object in their order.
type fetched struct {
	most  int64
	none  bool // the request was only to validate
	begun bool
	size  int64
}

// take converts and checks a part.
func (f *fetched) take(message *pb.Chunk) (Chunk, error) {
	if f.none {
		return Chunk{}, breach("P-43", "Fetch sent a part of an object although it was asked only to validate the document")
	}
	switch part := message.GetPart().(type) {
	case *pb.Chunk_Begin:
		bound(part.Begin)
		f.begun, f.size = true, 0
		return Chunk{Begin: true, Revision: part.Begin.GetRevision()}, nil
	case *pb.Chunk_Data:
		f.size += int64(len(part.Data))
		switch {
		case !f.begun:
			return Chunk{}, breach("P-42", "Fetch sent data before begin")
		case len(part.Data) == 0 || len(part.Data) > MaxChunkBytes:
			return Chunk{}, breach("P-42", "Fetch sent a part of %d bytes, which is empty or larger than %d",
				len(part.Data), MaxChunkBytes)
		case f.size > f.most:
			return Chunk{}, breach("P-42", "Fetch sent more than %d bytes", f.most)
		}
		return Chunk{Data: part.Data}, nil
	}
	return Chunk{}, breach("P-42", "Fetch sent a part that is neither begin nor data")
}

func (f *fetched) end() error {
	if !f.begun && !f.none {
		return breach("P-42", "Fetch ended without begin")
	}
	return nil
}

// Report implements Source.
func (c *Client) Report(ctx context.Context, r ReportRequest) error {
	var trailer metadata.MD
	_, err := c.source.Report(ctx, &pb.ReportRequest{
		Document: r.Document, Target: targetToPB(r.Target), Report: r.Report, Sequence: r.Sequence, ValidateOnly: r.ValidateOnly,
	}, grpc.Trailer(&trailer))
	return fromStatus(ctx, "Report", err, trailer)
}

// Passphrase implements KeyProvider. A passphrase that is too short or too long is Internal.
func (c *Client) Passphrase(ctx context.Context, r PassphraseRequest) ([]byte, error) {
	var trailer metadata.MD
	answer, err := c.keys.Passphrase(ctx, &pb.PassphraseRequest{
		Document: r.Document, Target: targetToPB(r.Target), RetryFor: durationToPB(r.RetryFor), ValidateOnly: r.ValidateOnly,
	}, grpc.Trailer(&trailer))
	if err != nil {
		return nil, fromStatus(ctx, "Passphrase", err, trailer)
	}
	switch passphrase := answer.GetPassphrase(); {
	case !r.ValidateOnly:
		return checkedPassphrase("Passphrase", passphrase)
	case len(passphrase) > 0:
		return nil, breach("P-43", "Passphrase sent one although it was asked only to validate the document")
	}
	return nil, nil
}

// NewPassphrase implements KeyProvider.
func (c *Client) NewPassphrase(ctx context.Context, r NewPassphraseRequest) (NewPassphrase, error) {
	var trailer metadata.MD
	answer, err := c.keys.NewPassphrase(ctx, &pb.NewPassphraseRequest{
		Key: clean(r.Key), Target: targetToPB(r.Target), ProviderConfig: r.ProviderConfig,
	}, grpc.Trailer(&trailer))
	if err != nil {
		return NewPassphrase{}, fromStatus(ctx, "NewPassphrase", err, trailer)
	}
	if size := len(answer.GetUri()); size == 0 || size > MaxTextBytes {
		return NewPassphrase{}, breach("P-46", "NewPassphrase answered with a URI of %d bytes, which is empty or longer than %d",
			size, MaxTextBytes)
	}
	passphrase, err := checkedPassphrase("NewPassphrase", answer.GetPassphrase())
	if err != nil {
		return NewPassphrase{}, err
	}
	return NewPassphrase{Passphrase: passphrase, URI: answer.GetUri()}, nil
}

// checkedPassphrase returns a passphrase of a permitted length. Its error does not say how long another one is.
func checkedPassphrase(call string, passphrase []byte) ([]byte, error) {
	if len(passphrase) < MinPassphraseBytes || len(passphrase) > MaxPassphraseBytes {
		return nil, breach("P-45", "%s answered with a passphrase that has fewer than %d or more than %d bytes",
			call, MinPassphraseBytes, MaxPassphraseBytes)
	}
	return passphrase, nil
}

// durationToPB returns nil for 0.
func durationToPB(d time.Duration) *durationpb.Duration {
	if d <= 0 {
		return nil
	}
	return durationpb.New(d)
}
