package main

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/sdk"
)

// expiry is the metadata with the time until which a blob is needed.
const expiry = "x-ms-meta-machineadm_expires"

// store writes a blob.
func (s storage) store(ctx context.Context, l sdk.Location, o sdk.NewObject) (sdk.Reference, error) {
	header, now := map[string]string{"x-ms-blob-type": "BlockBlob", "Content-Type": "application/yaml"}, time.Now()
	if o.Expiry > 0 {
		header[expiry] = now.Add(o.Expiry).UTC().Format(time.RFC3339)
	}
	if _, err := s.exchange(ctx, l, cloud.Message{Method: http.MethodPut, URL: l.URI, Header: header, Body: o.Data}); err != nil {
		return sdk.Reference{}, sdk.At(err, l.Field)
	}
	c, _ := sdk.ProviderConfig[config](l.ProviderConfig) // validated before
	report := l.URI + sdk.ReportSuffix
	if l.Access == sdk.AccessRole {
		return sdk.Reference{URI: l.URI, ReportURI: report, ProviderConfig: c.Public()}, nil
	}
	expires := now.Add(cloud.Valid(o.Expiry))
	object, err := c.SharedKey.presign(l.URI, "r", expires)
	if err != nil {
		return sdk.Reference{}, err
	}
	if report, err = c.SharedKey.presign(report, "cw", expires); err != nil {
		return sdk.Reference{}, err
	}
	return cloud.Presigned(c.TLS, object, report, map[string]string{"x-ms-blob-type": "BlockBlob"}, expires), nil
}

// presign returns the URL of a blob with a signature for permissions such as r. The URL is a credential. Source: Create a service SAS,
// versions 2020-12-06 and later.
func (k sharedKey) presign(uri, permissions string, expires time.Time) (string, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return "", sdk.Precondition("the URL of the blob is not valid", "") // not err, which quotes it
	}
	path := u.Path
	if !strings.HasPrefix(u.Hostname(), k.Account+".") { // an emulator has the account in the path
		path = strings.TrimPrefix(path, "/"+k.Account)
	}
	end := expires.UTC().Format(time.RFC3339)
	// Start, identifier, IP, snapshot, encryption scope and headers of the answer are not restricted.
	signature := k.sign(strings.Join([]string{
		permissions, "", end, "/blob/" + k.Account + path, "", "", "https", apiVersion, "b", "", "", "", "", "", "", "",
	}, "\n"))
	return uri + "?" + url.Values{
		"sp": {permissions}, "se": {end}, "spr": {"https"}, "sv": {apiVersion}, "sr": {"b"}, "sig": {signature},
	}.Encode(), nil
}

// remove deletes a blob and its report, with their snapshots.
func (s storage) remove(ctx context.Context, l sdk.Location) error {
	for _, suffix := range []string{"", sdk.ReportSuffix} {
		_, err := s.exchange(ctx, l, cloud.Message{
			Method: http.MethodDelete, URL: l.URI + suffix, Header: map[string]string{"x-ms-delete-snapshots": "include"},
		})
		if err != nil && !cloud.IsAbsent(err) {
			return sdk.At(err, l.Field)
		}
	}
	return nil
}
