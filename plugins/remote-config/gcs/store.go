package main

import (
	"context"
	"net/http"
	"time"

	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/plugins/internal/cloud/google"
	"github.com/machineadm/machineadm/sdk"
)

// store writes an object. Its custom time is when it is no longer needed, for a rule of the bucket.
func (s storage) store(ctx context.Context, l sdk.Location, o sdk.NewObject) (sdk.Reference, error) {
	c, _ := sdk.ProviderConfig[config](l.ProviderConfig) // validated before
	bucket, object, _ := parse(l.URI)
	m, now := metadata{Name: object, ContentType: "application/yaml"}, time.Now()
	if o.Expiry > 0 {
		m.CustomTime = now.Add(o.Expiry).UTC().Format(time.RFC3339)
	}
	if err := s.upload(ctx, c, bucket, "", m, o.Data); err != nil {
		return sdk.Reference{}, sdk.At(err, l.Field)
	}
	if l.Access == sdk.AccessRole {
		return sdk.Reference{
			URI: l.URI, ReportURI: l.URI + sdk.ReportSuffix, ProviderConfig: google.Config{TLS: c.Public(), Endpoint: c.Endpoint},
		}, nil
	}
	valid := cloud.Valid(o.Expiry)
	var urls [2]string
	for i, method := range []string{http.MethodGet, http.MethodPut} {
		signed, err := s.Presign(c.Config, method, "/"+bucket+"/"+object+[]string{"", sdk.ReportSuffix}[i], now, valid)
		if err != nil {
			return sdk.Reference{}, err
		}
		urls[i] = signed
	}
	return cloud.Presigned(c.TLS, urls[0], urls[1], nil, now.Add(valid)), nil
}

// remove deletes an object and its report.
func (s storage) remove(ctx context.Context, l sdk.Location) error {
	c, _ := sdk.ProviderConfig[config](l.ProviderConfig) // validated before
	bucket, object, _ := parse(l.URI)
	s.SpreadUntil = time.Time{} // 404 means that there is nothing to delete
	for _, suffix := range []string{"", sdk.ReportSuffix} {
		err := s.Exchange(ctx, c.Config, cloud.Message{Method: http.MethodDelete, URL: path(bucket, object+suffix)})
		if err != nil && !cloud.IsAbsent(err) {
			return sdk.At(err, l.Field)
		}
	}
	return nil
}
