package main

import (
	"context"
	"net/http"
	"time"

	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/sdk"
)

// expiry is the annotation with the time until which a Secret is needed.
const expiry = "machineadm.cluster.x-k8s.io/expires"

// store writes a Secret by server-side apply, which makes it or replaces the value.
func store(ctx context.Context, l sdk.Location, o sdk.NewObject) (sdk.Reference, error) {
	at, _ := parse(l.Field, l.URI) // validated before
	m := metadata{Name: at.name}
	if o.Expiry > 0 {
		m.Annotations = map[string]string{expiry: time.Now().Add(o.Expiry).UTC().Format(time.RFC3339)}
	}
	object := secret{"v1", "Secret", m, map[string][]byte{at.key: o.Data}}
	if err := applied(ctx, l, at.url("secrets"), "machineadm", object, nil); err != nil {
		return sdk.Reference{}, sdk.At(err, l.Field)
	}
	c, _ := sdk.ProviderConfig[config](l.ProviderConfig) // validated before
	report := place{at.server, at.namespace, at.name + sdk.ReportSuffix, reportKey}
	return sdk.Reference{
		URI: at.String(), ReportURI: report.String(), ProviderConfig: config{Token: c.Read.Token, CA: c.CA, CAPins: c.CAPins},
	}, nil
}

// remove deletes a Secret, and the ConfigMap with its report.
func remove(ctx context.Context, l sdk.Location) error {
	at, _ := parse(l.Field, l.URI) // validated before
	report := place{at.server, at.namespace, at.name + sdk.ReportSuffix, reportKey}
	for _, url := range []string{at.url("secrets"), report.url("configmaps")} {
		if _, err := exchange(ctx, l, cloud.Message{Method: http.MethodDelete, URL: url}); err != nil && !cloud.IsAbsent(err) {
			return sdk.At(err, l.Field)
		}
	}
	return nil
}
