// Package objectstores runs real object stores for tests, each on a port of its own, with its objects in a temporary directory and
// one bucket: S3 by versitygw, which checks every signature, and Google Cloud Storage by fake-gcs-server, which checks no
// credentials, so that everyone can read its bucket. Both have conditional writes.
package objectstores

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/tools"
)

const (
	host   = "127.0.0.1"
	bucket = "releases"
	// starting is how long a server may take to serve its first request, on a busy machine.
	starting = time.Minute
)

// Server is a running object store.
type Server struct {
	Endpoint string // scheme, host and port
	Bucket   string
	port     string
	address  string
	files    []string // certificate and key; none without TLS
	client   *http.Client
}

// URL returns where an object is, ENDPOINT/BUCKET/KEY, escaped as S3 signs it.
func (s *Server) URL(key string) string {
	path := (&url.URL{Path: "/" + s.Bucket + "/" + key}).EscapedPath()
	return s.Endpoint + strings.ReplaceAll(path, "+", "%2B")
}

// newServer returns a server that is to be started at an IP address of the machine, with TLS if there is an authority.
func newServer(t testing.TB, address string, ca *authority.Authority) Server {
	t.Helper()
	port, err := freePort(t.Context(), address)
	check(t, err)
	s := Server{Endpoint: "http://" + net.JoinHostPort(address, port), Bucket: bucket, port: port, address: address, client: http.DefaultClient}
	if ca != nil {
		s.Endpoint, s.files, s.client = "https://"+net.JoinHostPort(address, port), issue(t, address, ca), clientOf(ca)
	}
	return s
}

// start starts a program, which the end of the test stops, and waits until a request succeeds.
func start(t testing.TB, c *exec.Cmd, request func() error) {
	t.Helper()
	var log bytes.Buffer
	c.Stdout, c.Stderr = &log, &log
	check(t, c.Start())
	ended := make(chan struct{})
	go func() { _ = c.Wait(); close(ended) }() // killed by the cleanup, or reported below
	t.Cleanup(func() { _ = c.Process.Kill(); <-ended })
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	for deadline := time.After(starting); ; {
		failure := request()
		if failure == nil {
			return
		}
		select {
		case <-ended:
			t.Fatalf("%s: %s\n%s", c, c.ProcessState, &log)
		case <-deadline:
			t.Fatalf("%s does not serve after %s: %v", c, starting, failure)
		case <-ticks.C:
		}
	}
}

// do sends a request and returns the header and the body of the answer. Any status but 2xx is an error.
func (s *Server) do(ctx context.Context, method, to, contentType string, body []byte) (http.Header, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = answer.Body.Close() }() // read to its end
	data, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s", answer.Status, data)
	}
	return answer.Header, data, err
}

// clientOf trusts the authority alone.
func clientOf(ca *authority.Authority) *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.Certificate)
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
	}}
}

// issue writes a certificate of the servers' address, and its key, and returns both files.
func issue(t testing.TB, address string, ca *authority.Authority) []string {
	t.Helper()
	dir := t.TempDir()
	certificate, key := ca.Issue(t, "localhost", func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.ParseIP(address)} })
	files := []string{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
	check(t, errors.Join(os.WriteFile(files[0], certificate, 0o600), os.WriteFile(files[1], key, 0o600)))
	return files
}

// freePort returns a port on which nothing listens. The servers take no listener from their caller.
func freePort(ctx context.Context, address string) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return "", err
	}
	return port, listener.Close()
}

func built(t testing.TB, tool string) string {
	t.Helper()
	return tools.For(t, tool)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
