package endpoint

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/host/controller/serve"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/download"
	"github.com/machineadm/machineadm/testenv/sources"
	"github.com/machineadm/machineadm/testenv/tools"
)

const plugin = "machineadm-remote-configuration-provider-http"

// backend has one config, ns/worker, and fails for ns/broken.
type backend struct {
	bearer string
	kept   atomic.Uint64
}

func (b *backend) Authorize(_ context.Context, of types.NamespacedName, bearer string) error {
	switch {
	case bearer != b.bearer:
		return serve.ErrDenied
	case of.Name == "broken":
		return errors.New("the API server is away")
	}
	return nil
}

func (b *backend) Data(ctx context.Context, of types.NamespacedName, bearer string) ([]byte, error) {
	return []byte("# stream\n"), b.Authorize(ctx, of, bearer)
}

func (b *backend) Report(_ context.Context, _ types.NamespacedName, _ string, sequence uint64, body []byte) error {
	switch {
	case string(body) != `{"kind":"RunReport"}`:
		return &serve.InvalidError{Problem: "kind must be RunReport"}
	case sequence <= b.kept.Load():
		return serve.ErrOld
	}
	b.kept.Store(sequence)
	return nil
}

// start starts an endpoint and returns its URL and what trusts it.
func start(t *testing.T, b *backend, releases string) (url string, trust []byte) {
	t.Helper()
	certificate, key, err := serve.NewAuthority(time.Now())
	require.NoError(t, err)
	certificates, err := serve.FromAuthority(certificate, key, "127.0.0.1", logr.Discard(), time.Now)
	require.NoError(t, err)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	server, err := serve.New(serve.Options{
		Address: address, Certificates: certificates, Backend: b, Releases: releases, Registry: prometheus.NewRegistry(), Log: logr.Discard(),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() { cancel(); assert.NoError(t, <-ended) })
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificates.Trust())
	require.Eventually(t, func() bool {
		c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: pool})
		return err == nil && c.Close() == nil
	}, needs.Timeout(time.Minute), time.Millisecond)
	return "https://" + address, certificates.Trust()
}

// TestPlugin: the plugin fetches a stream and sends reports, and takes each answer for what it is.
func TestPlugin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, tools.Products(t.Context(), dir, map[string]string{plugin: "plugins/remote-config/http"}))
	b := &backend{bearer: base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))}
	url, trust := start(t, b, "")
	do := func(path, bearer string, sequence uint64, body string) sources.Result {
		t.Helper()
		c := sources.Call{Plugin: filepath.Join(dir, plugin), Sequence: sequence, Report: []byte(body), Spec: map[string]any{
			"provider": "http", "uri": url + path, "providerConfig": map[string]any{"ca": string(trust), "bearer": map[string]any{"value": bearer}},
		}}
		if body != "" {
			c.Kind = "ReportTarget"
		}
		r, err := sources.Do(t.Context(), c)
		require.NoError(t, err)
		return r
	}
	r := do("/v1/data/ns/worker", b.bearer, 0, "")
	require.Nil(t, r.Error)
	assert.Equal(t, len("# stream\n"), r.Size)
	const report = `{"kind":"RunReport"}`
	for _, sequence := range []uint64{9, 8} {
		require.Nil(t, do("/v1/report/ns/worker", b.bearer, sequence, report).Error)
		assert.Equal(t, uint64(9), b.kept.Load())
	}
	wrong := strings.Repeat("A", 43)
	for path, c := range map[string]struct {
		bearer, body string
		code         pluginv1.Code
		status       string
		hasPause     bool
	}{
		"/v1/data/ns/worker":       {wrong, "", pluginv1.CodePrecondition, "403", false},
		"/v1/data/ns/worker?short": {"short", "", pluginv1.CodePrecondition, "401", false},
		"/v1/data/ns/broken":       {b.bearer, "", pluginv1.CodeRetry, "", true},
		"/v1/report/ns/worker":     {wrong, report, pluginv1.CodePrecondition, "403", false},
		"/v1/report/ns/broken":     {b.bearer, report, pluginv1.CodeRetry, "", true},
		"/v1/report/ns/invalid":    {b.bearer, "{}", pluginv1.CodePrecondition, "", false},
	} {
		r := do(path, c.bearer, 10, c.body)
		require.NotNil(t, r.Error, path)
		assert.Equal(t, c.code, r.Error.Code, "%s: %v", path, r.Error)
		assert.Equal(t, c.status, r.Error.Facts[pluginv1.FactStatus], path)
		assert.Equal(t, c.hasPause, r.Error.RetryAfter > 0, path)
	}
}

// TestInstall: the program installs a release from the endpoint. SSL_CERT_FILE has the authority.
func TestInstall(t *testing.T) {
	t.Parallel()
	needs.Root(t) // the lock of runs is in /run
	dir := t.TempDir()
	require.NoError(t, tools.Products(t.Context(), dir, map[string]string{"machineadm": "host/cmd/machineadm"}))
	key := download.NewKey(t)
	release := download.Release{Key: key}
	release.Write(t, filepath.Join(dir, "releases", "v1.0.0"))
	url, trust := start(t, &backend{}, filepath.Join(dir, "releases"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.crt"), trust, 0o600))
	c := exec.CommandContext(t.Context(), filepath.Join(dir, "machineadm"), "install", "--to", filepath.Join(dir, "to"),
		"--manifest", url+"/v1/release/v1.0.0/manifest.json", "--key", key.Public().String())
	c.Env = append(os.Environ(), "SSL_CERT_FILE="+filepath.Join(dir, "ca.crt"))
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, "machineadm v1.0.0 is installed in "+filepath.Join(dir, "to")+" with 2 plugins\n", string(out))
}
