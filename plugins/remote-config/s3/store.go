package main

import (
	"context"
	"net/http"
	"time"

	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/sdk"
)

// expiry is the header that keeps with an object until when it is needed.
const expiry = "X-Amz-Meta-Machineadm-Expires"

// store writes an object. Without other settings of the bucket, its owner alone can read it.
func (s store) store(ctx context.Context, l sdk.Location, o sdk.NewObject) (sdk.Reference, error) {
	to, err := s.open(ctx, l, "")
	if err != nil {
		return sdk.Reference{}, sdk.At(err, l.Field)
	}
	header := map[string]string{"Content-Type": "application/yaml"}
	if o.Expiry > 0 {
		header[expiry] = s.machine.Now().Add(o.Expiry).UTC().Format(time.RFC3339)
	}
	answer, err := to.Send(ctx, "s3", http.MethodPut, to.url, header, o.Data)
	if err != nil {
		return sdk.Reference{}, sdk.At(err, l.Field)
	}
	if err := answer.Body.Close(); err != nil {
		return sdk.Reference{}, err
	}
	c, _ := sdk.ProviderConfig[config](l.ProviderConfig) // validated before
	if l.Access == sdk.AccessPresigned {
		valid := cloud.Valid(o.Expiry)
		object, expires := to.Presign(http.MethodGet, to.url, valid)
		to.url.Path += sdk.ReportSuffix
		report, _ := to.Presign(http.MethodPut, to.url, valid)
		return cloud.Presigned(cloud.TLS{CA: c.CA}, object, report, nil, expires), nil
	}
	return sdk.Reference{
		URI: l.URI, ReportURI: l.URI + sdk.ReportSuffix,
		ProviderConfig: config{Regional: c.Public(to.Region()), PathStyle: c.PathStyle},
	}, nil
}

// remove deletes an object and its report. A bucket that keeps versions keeps them.
func (s store) remove(ctx context.Context, l sdk.Location) error {
	for _, suffix := range []string{"", sdk.ReportSuffix} {
		o, err := s.open(ctx, l, suffix)
		if err != nil {
			return sdk.At(err, l.Field)
		}
		answer, err := o.Definite().Send(ctx, "s3", http.MethodDelete, o.url, nil, nil)
		switch {
		case err == nil:
			_ = answer.Body.Close() // it is not read
		case !cloud.IsAbsent(err):
			return sdk.At(err, l.Field)
		}
	}
	return nil
}
