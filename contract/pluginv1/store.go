package pluginv1

import (
	"context"
	"encoding/json"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/machineadm/machineadm/contract/pluginv1/pb"
)

// Store implements Source. An answer without a usable reference is Internal.
func (c *Client) Store(ctx context.Context, r StoreRequest) (Stored, error) {
	var trailer metadata.MD
	answer, err := c.source.Store(ctx, &pb.StoreRequest{
		Storage: storageToPB(r.Storage), Name: clean(r.Name), Data: r.Data, Expiry: durationToPB(r.Expiry), Report: r.Report,
		ValidateOnly: r.ValidateOnly, RetryFor: durationToPB(r.RetryFor),
	}, grpc.Trailer(&trailer))
	if err != nil {
		return Stored{}, fromStatus(ctx, "Store", err, trailer)
	}
	if r.ValidateOnly {
		if answer.GetUri() != "" || len(answer.GetProviderConfig()) > 0 {
			return Stored{}, breach("P-43", "Store answered with a reference although it was asked only to validate the storage")
		}
		return Stored{}, nil
	}
	return storedFromPB(answer, r.Report)
}

// storedFromPB converts and checks an answer of Store.
func storedFromPB(answer *pb.StoreResponse, report bool) (Stored, error) {
	for _, uri := range []string{answer.GetUri(), answer.GetReportUri(), answer.GetProvider()} {
		if len(uri) > MaxTextBytes {
			return Stored{}, breach("P-56", "Store answered with a text of %d bytes, more than %d", len(uri), MaxTextBytes)
		}
	}
	config := answer.GetProviderConfig()
	switch {
	case answer.GetUri() == "":
		return Stored{}, breach("P-56", "Store answered without a URI")
	case len(config) > MaxStoredConfigBytes || len(config) > 0 && json.Unmarshal(config, new(map[string]json.RawMessage)) != nil:
		return Stored{}, breach("P-56", "Store answered with a providerConfig that is no object of JSON, or larger than %d bytes", MaxStoredConfigBytes)
	case answer.GetReportUri() != "" && !report:
		return Stored{}, breach("P-56", "Store answered with a place for a report although the request has none")
	case answer.GetExpires() != nil && answer.GetExpires().CheckValid() != nil:
		return Stored{}, breach("P-56", "Store answered with an invalid time")
	}
	s := Stored{Provider: answer.GetProvider(), URI: answer.GetUri(), ProviderConfig: config, ReportURI: answer.GetReportUri()}
	if answer.GetExpires() != nil {
		s.Expires = answer.GetExpires().AsTime()
	}
	return s, nil
}

// Remove implements Source.
func (c *Client) Remove(ctx context.Context, r RemoveRequest) error {
	var trailer metadata.MD
	_, err := c.source.Remove(ctx, &pb.RemoveRequest{
		Storage: storageToPB(r.Storage), Name: clean(r.Name), RetryFor: durationToPB(r.RetryFor),
	}, grpc.Trailer(&trailer))
	return fromStatus(ctx, "Remove", err, trailer)
}

func (s *sourceServer) Store(ctx context.Context, r *pb.StoreRequest) (answer *pb.StoreResponse, err error) {
	defer encode(&err)
	defer recovered(&err)
	stored, err := s.impl.Store(ctx, StoreRequest{
		Storage: storageFromPB(r.GetStorage()), Name: r.GetName(), Data: r.GetData(), Expiry: max(0, r.GetExpiry().AsDuration()),
		Report: r.GetReport(), ValidateOnly: r.GetValidateOnly(), RetryFor: max(0, r.GetRetryFor().AsDuration()),
	})
	if err != nil {
		return nil, err
	}
	answer = &pb.StoreResponse{
		Provider: clean(stored.Provider), Uri: clean(stored.URI), ProviderConfig: stored.ProviderConfig, ReportUri: clean(stored.ReportURI),
	}
	if !stored.Expires.IsZero() {
		answer.Expires = timestamppb.New(stored.Expires)
	}
	return answer, nil
}

func (s *sourceServer) Remove(ctx context.Context, r *pb.RemoveRequest) (answer *pb.RemoveResponse, err error) {
	defer encode(&err)
	defer recovered(&err)
	if err := s.impl.Remove(ctx, RemoveRequest{
		Storage: storageFromPB(r.GetStorage()), Name: r.GetName(), RetryFor: max(0, r.GetRetryFor().AsDuration()),
	}); err != nil {
		return nil, err
	}
	return &pb.RemoveResponse{}, nil
}

func storageToPB(s Storage) *pb.Storage {
	return &pb.Storage{
		UriPrefix: clean(s.URIPrefix), Access: clean(s.Access), ProviderConfig: s.ProviderConfig, Target: targetToPB(s.Target),
	}
}

func storageFromPB(s *pb.Storage) Storage {
	return Storage{
		URIPrefix: s.GetUriPrefix(), Access: s.GetAccess(), ProviderConfig: s.GetProviderConfig(), Target: targetFromPB(s.GetTarget()),
	}
}
