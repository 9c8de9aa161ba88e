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
// cluster's authority, so that the server is not authenticated: a wrong answer can only refuse the join, which kubeadm verifies.
func ServerVersion(ctx context.Context, endpoint string) (v release.Version, ok bool) {
	var answer struct {
		Version string `json:"gitVersion"`
	}
	if !get(ctx, endpoint, "/version", anyServer(), nil, &answer) {
		return v, false
	}
	v, err := release.Parse(answer.Version)
	return v, err == nil
}

func anyServer() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12} //nolint:gosec // for what the caller verifies
}

// get asks the API server at HOST:PORT; it returns false without an answer. No redirect is followed.
func get(ctx context.Context, endpoint, path string, config *tls.Config, token []byte, answer any) bool {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+normal(endpoint)+path, nil)
	if err != nil {
		return false
	}
	if token != nil {
		request.Header.Set("Authorization", "Bearer "+string(token))
	}
	client := httpclient.New(httpclient.Options{Proxy: http.ProxyFromEnvironment, TLS: config})
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }() // only read from
	return response.StatusCode == http.StatusOK && json.NewDecoder(io.LimitReader(response.Body, 2<<20)).Decode(answer) == nil
}
