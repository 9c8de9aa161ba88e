package controller

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/testenv/authority"
)

// stage is a moment in the answer to a PUT.
type stage int

const (
	arrived  stage = iota // nothing is kept yet
	kept                  // it is kept, and not answered
	answered              // it is answered
)

// shelf is a web server that keeps objects: the manager writes them, and machines read them and leave reports.
type shelf struct {
	url string
	ca  authority.Authority

	mu      sync.Mutex
	objects map[string][]byte
	// passphrases are those that were made for documents.
	passphrases [][]byte
	status      int // of every answer; 0: the right one
	at          stage
	reached     chan struct{} // nil: no request is held
	release     chan struct{}
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	s := &shelf{ca: authority.New(t), objects: map[string][]byte{}}
	certificate, key := s.ca.Issue(t, "localhost", func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} })
	pair, err := tls.X509KeyPair(certificate, key)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(s)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	s.url = server.URL
	return s
}

// ServeHTTP implements http.Handler.
func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/transit/datakey/plaintext/machines" {
		s.passphrase(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	name, found := strings.CutPrefix(r.URL.Path, "/objects/")
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	status := s.status
	s.mu.Unlock()
	switch {
	case err != nil || !found:
		w.WriteHeader(http.StatusBadRequest)
	case status != 0:
		w.WriteHeader(status)
	case token != writerToken && (token != readerToken || r.Method != http.MethodGet):
		w.WriteHeader(http.StatusForbidden)
	case r.Method == http.MethodPut:
		s.pass(arrived, r)
		if r.Context().Err() != nil { // its sender is gone
			return
		}
		s.put(name, body)
		s.pass(kept, r)
		w.WriteHeader(http.StatusCreated)
		s.pass(answered, nil)
	case r.Method == http.MethodDelete:
		s.mu.Lock()
		delete(s.objects, name)
		s.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	default:
		object := s.object(name)
		if object == nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write(object)
	}
}

// passphrase answers as the transit engine of Vault does, with another passphrase each time.
func (s *shelf) passphrase(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Vault-Token") != writerToken {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	made := []byte(rand.Text())
	s.mu.Lock()
	s.passphrases = append(s.passphrases, made)
	s.mu.Unlock()
	_, _ = fmt.Fprintf(w, `{"data":{"plaintext":%q,"ciphertext":%q}}`, base64.StdEncoding.EncodeToString(made), "vault:v1:"+base64.StdEncoding.EncodeToString([]byte(rand.Text())))
}

// hold holds the next PUT at a stage. The first channel is closed there, and the function lets it pass.
func (s *shelf) hold(at stage) (reached <-chan struct{}, release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.reached, s.release = at, make(chan struct{}), make(chan struct{})
	held := s.release
	return s.reached, func() { close(held) }
}

func (s *shelf) pass(at stage, r *http.Request) {
	s.mu.Lock()
	if s.reached == nil || s.at != at {
		s.mu.Unlock()
		return
	}
	reached, release := s.reached, s.release
	s.reached = nil
	s.mu.Unlock()
	close(reached)
	if r == nil {
		return // the answer leaves when the handler returns
	}
	select {
	case <-release:
	case <-r.Context().Done():
		<-release
	}
}

func (s *shelf) answer(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

func (s *shelf) put(name string, object []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[name] = object
}

func (s *shelf) object(name string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[name]
}

func (s *shelf) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}
