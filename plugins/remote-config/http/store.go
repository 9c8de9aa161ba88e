package main

import (
	"context"
	"net/http"

	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/sdk"
)

// store puts an object, which the machines read with credentials of their own.
func store(ctx context.Context, l sdk.Location, o sdk.NewObject) (sdk.Reference, error) {
	if err := sent(ctx, l, request{http.MethodPut, o.Data, http.Header{"Content-Type": {"application/yaml"}}}); err != nil {
		return sdk.Reference{}, err
	}
	c, _ := sdk.ProviderConfig[config](l.ProviderConfig) // validated before
	var machine config
	if c.Read != nil {
		machine.credentials = *c.Read
	}
	if machine.CA == "" && len(machine.Pins) == 0 {
		machine.CA, machine.Pins = c.CA, c.Pins
	}
	machine.Report = cloud.SignedReport{Method: http.MethodPut}
	return sdk.Reference{URI: l.URI, ReportURI: l.URI + sdk.ReportSuffix, ProviderConfig: machine}, nil
}

// remove deletes an object and its report.
func remove(ctx context.Context, l sdk.Location) error {
	for _, suffix := range []string{"", sdk.ReportSuffix} {
		one := l
		one.URI += suffix
		if err := sent(ctx, one, request{method: http.MethodDelete}); err != nil && !cloud.IsAbsent(err) {
			return err
		}
	}
	return nil
}
