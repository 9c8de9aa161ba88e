// Command bare is the least that a source plugin can be: go-plugin's server and a GET of net/http with its defaults. What the http
// provider costs is measured against it.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

func main() { launch.Serve(source{}) }

type source struct{}

// Describe implements pluginv1.Source.
func (source) Describe(context.Context, pluginv1.DescribeRequest) (pluginv1.Description, error) {
	return pluginv1.Description{Name: "bare"}, nil
}

// Fetch implements pluginv1.Source.
func (source) Fetch(ctx context.Context, r pluginv1.FetchRequest, send func(pluginv1.Chunk) error) error {
	var doc struct {
		Spec struct {
			URI            string
			ProviderConfig struct{ CA string }
		}
	}
	if err := json.Unmarshal(r.Document, &doc); err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(doc.Spec.ProviderConfig.CA))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, doc.Spec.URI, nil)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // read to the end
	if err := send(pluginv1.Chunk{Begin: true}); err != nil {
		return err
	}
	buffer := make([]byte, 128<<10)
	for {
		n, err := io.ReadFull(answer.Body, buffer)
		if n > 0 {
			if err := send(pluginv1.Chunk{Data: buffer[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Report implements pluginv1.Source.
func (source) Report(context.Context, pluginv1.ReportRequest) error { return errors.New("no reports") }

// Store implements pluginv1.Source.
func (source) Store(context.Context, pluginv1.StoreRequest) (pluginv1.Stored, error) {
	return pluginv1.Stored{}, errors.New("no storage")
}

// Remove implements pluginv1.Source.
func (source) Remove(context.Context, pluginv1.RemoveRequest) error { return errors.New("no storage") }
