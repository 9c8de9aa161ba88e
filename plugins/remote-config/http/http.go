package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/sdk"
)

// fetch opens the object.
func fetch(ctx context.Context, l sdk.Location) (sdk.Object, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.URI, nil)
	if err != nil {
		return sdk.Object{}, errors.New("the URI of a valid document is not valid") // not err, which quotes it
	}
	answer, err := send(r, l, cloud.MaxRedirects) //nolint:bodyclose // the caller does
	if err != nil {
		return sdk.Object{}, err
	}
	return sdk.Object{Revision: cmp.Or(answer.Header.Get("ETag"), answer.Header.Get("Last-Modified")), Body: answer.Body}, nil
}

// report sends the report of a run. One call is one request: the host repeats the call.
func report(ctx context.Context, l sdk.Location, run sdk.RunReport) error {
	if l.Beside {
		return sdk.Unsupported("spec.report", "provider http keeps no report beside the object", "name the destination in spec.report.uri")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.URI, bytes.NewReader(run.Body))
	if err != nil {
		return errors.New("the URI of a valid document is not valid") // not err, which quotes it
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Machineadm-Sequence", strconv.FormatUint(run.Sequence, 10))
	answer, err := send(r, l, 0)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

func send(r *http.Request, l sdk.Location, redirects int) (*http.Response, error) {
	c, _ := sdk.ProviderConfig[config](l.ProviderConfig) // validated before
	c.authenticate(r)
	answer, err := cloud.Client{TLS: c.TLS, Digest: l.SHA256 != "", Redirects: redirects}.Do(r)
	return answer, sdk.At(err, l.Field)
}
