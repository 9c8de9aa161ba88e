package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"strconv"

	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/sdk"
)

// fetch opens the object.
func fetch(ctx context.Context, l sdk.Location) (sdk.Object, error) {
	answer, err := send(ctx, l, request{method: http.MethodGet}) //nolint:bodyclose // the caller does
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
	c, _ := sdk.ProviderConfig[config](l.ProviderConfig) // validated before
	return sent(ctx, l, request{cmp.Or(c.Report.Method, http.MethodPost), run.Body, http.Header{
		"Content-Type": {"application/json"}, "Machineadm-Sequence": {strconv.FormatUint(run.Sequence, 10)},
	}})
}

// request is a request for a location.
type request struct {
	method string
	body   []byte
	header http.Header
}

// sent sends a request whose answer has nothing to read.
func sent(ctx context.Context, l sdk.Location, r request) error {
	answer, err := send(ctx, l, r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

func send(ctx context.Context, l sdk.Location, r request) (*http.Response, error) {
	c, _ := sdk.ProviderConfig[config](l.ProviderConfig) // validated before
	to := l.URI
	if query := c.queryOf(l); !query.IsZero() {
		to += "?" + string(query.Reveal())
	}
	message, err := http.NewRequestWithContext(ctx, r.method, to, bytes.NewReader(r.body))
	if err != nil {
		return nil, errors.New("the URI of a valid document is not valid") // not err, which quotes it
	}
	maps.Copy(message.Header, r.header)
	c.authenticate(message)
	answer, err := cloud.Client{TLS: c.TLS, Digest: l.SHA256 != "", Redirects: cloud.MaxRedirects}.Do(message)
	return answer, sdk.At(err, l.Field)
}
