package member

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"

	"github.com/machineadm/machineadm/internal/httpclient"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/release"
)

// Server returns the HOST:PORT of a kubeconfig.
func Server(text []byte) string { return parseKubeconfig(text).host() }

// ServerVersion asks the API server at HOST:PORT for its version; ok is false without one. Before a join the machine lacks the
// cluster's authority, so that the server is not authenticated: a wrong answer can only refuse the join, which kubeadm verifies. No redirect is followed.
func ServerVersion(ctx context.Context, endpoint string) (v release.Version, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+normal(endpoint)+"/version", nil)
	if err != nil {
		return v, false
	}
	client := httpclient.New(httpclient.Options{
		Proxy: http.ProxyFromEnvironment,
		TLS:   &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, //nolint:gosec // see above
	})
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return v, false
	}
	defer func() { _ = response.Body.Close() }() // only read from
	var answer struct {
		Version string `json:"gitVersion"`
	}
	if json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(&answer) == nil {
		v, err = release.Parse(answer.Version)
		ok = err == nil
	}
	return v, ok
}
