// Command transit serves the transit engine and AppRole of Vault, by the part of Vault's HTTP API that the tests use. Tokens and
// policies are its own: Vault's core (testenv/tools/vault) takes minutes to compile. A policy allows paths without wildcards. It
// serves by TLS at a free port of 127.0.0.1, and prints its address and its root token, a line each.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	log "github.com/hashicorp/go-hclog"
	"github.com/hashicorp/hcl"
	"github.com/hashicorp/vault/builtin/credential/approle"
	"github.com/hashicorp/vault/builtin/logical/transit"
	"github.com/hashicorp/vault/sdk/helper/jsonutil"
	"github.com/hashicorp/vault/sdk/logical"
)

const month = 32 * 24 * time.Hour // Vault's longest lease by default

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "transit:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 2 {
		return fmt.Errorf("usage: transit CERTIFICATE KEY")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &server{root: newToken(), mounts: map[string]mount{}, policies: map[string][]rule{}, tokens: map[string][]string{}}
	fmt.Printf("%s\n%s\n", listener.Addr(), s.root)
	return (&http.Server{ReadHeaderTimeout: time.Minute, Handler: s}).ServeTLS(listener, arguments[0], arguments[1])
}

func newToken() string { return "hvs." + rand.Text() }

// server serves one request after the other.
type server struct {
	sync.Mutex
	root     string
	sealed   bool
	mounts   map[string]mount    // by the beginning of their paths, such as auth/approle/
	policies map[string][]rule   // by name
	tokens   map[string][]string // names of policies, by token
}

type mount struct {
	logical.Backend
	storage logical.Storage
}

// rule is a block `path` of a policy.
type rule struct {
	Path         string   `hcl:",key"`
	Capabilities []string `hcl:"capabilities"`
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Lock()
	defer s.Unlock()
	request, err := read(r)
	if err != nil {
		logical.RespondError(w, http.StatusBadRequest, err)
		return
	}
	if s.sealed {
		logical.RespondError(w, http.StatusServiceUnavailable, errors.New("Vault is sealed"))
		return
	}
	answer, err := s.serve(r.Context(), request)
	if status, err := logical.RespondErrorCommon(request, answer, err); status != 0 {
		logical.RespondError(w, status, err)
		return
	}
	if answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(logical.LogicalResponseToHTTPResponse(answer)) // else the client is gone
}

func read(r *http.Request) (*logical.Request, error) {
	operation, ok := map[string]logical.Operation{
		http.MethodGet: logical.ReadOperation, http.MethodPost: logical.UpdateOperation, http.MethodPut: logical.UpdateOperation,
	}[r.Method]
	path, below := strings.CutPrefix(r.URL.Path, "/v1/")
	if !ok || !below {
		return nil, fmt.Errorf("%s %s is not served", r.Method, r.URL.Path)
	}
	request := &logical.Request{
		Operation: operation, Path: path, ClientToken: r.Header.Get("X-Vault-Token"), Connection: &logical.Connection{RemoteAddr: "127.0.0.1"},
	}
	if err := jsonutil.DecodeJSONFromReader(r.Body, &request.Data); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return request, nil
}

func (s *server) serve(ctx context.Context, r *logical.Request) (*logical.Response, error) {
	at := "" // the longest beginning
	for beginning := range s.mounts {
		if strings.HasPrefix(r.Path, beginning) && len(beginning) > len(at) {
			at = beginning
		}
	}
	m, path := s.mounts[at], strings.TrimPrefix(r.Path, at)
	if at == "" || !slices.Contains(m.SpecialPaths().Unauthenticated, path) {
		if !s.allowed(r) {
			return nil, logical.ErrPermissionDenied
		}
	}
	if at == "" {
		return s.core(ctx, r)
	}
	r.Path, r.MountPoint, r.Storage = path, at, m.storage
	if r.Operation == logical.UpdateOperation {
		if checked, exists, err := m.HandleExistenceCheck(ctx, r); err != nil {
			return nil, err
		} else if checked && !exists {
			r.Operation = logical.CreateOperation
		}
	}
	answer, err := m.HandleRequest(ctx, r)
	if err == nil && answer != nil && answer.Auth != nil {
		s.issue(answer.Auth)
	}
	return answer, err
}

// allowed reports whether the token may do it. A policy for creating is never asked for: no test has one.
func (s *server) allowed(r *logical.Request) bool {
	if r.ClientToken == s.root {
		return true
	}
	for _, name := range s.tokens[r.ClientToken] {
		for _, rule := range s.policies[name] {
			if rule.Path == r.Path && slices.Contains(rule.Capabilities, string(r.Operation)) {
				return true
			}
		}
	}
	return false
}

// issue gives a login its token.
func (s *server) issue(login *logical.Auth) {
	login.ClientToken = newToken()
	s.tokens[login.ClientToken] = login.Policies
}

// core serves what Vault's core does: mounts, policies, tokens and the seal.
func (s *server) core(ctx context.Context, r *logical.Request) (*logical.Response, error) {
	if r.Operation != logical.UpdateOperation {
		return nil, logical.ErrUnsupportedPath
	}
	if at, ok := strings.CutPrefix(r.Path, "sys/mounts/"); ok && r.Data["type"] == "transit" {
		return nil, s.mount(ctx, at+"/", transit.Factory)
	}
	if at, ok := strings.CutPrefix(r.Path, "sys/auth/"); ok && r.Data["type"] == "approle" {
		return nil, s.mount(ctx, "auth/"+at+"/", approle.Factory)
	}
	if name, ok := strings.CutPrefix(r.Path, "sys/policies/acl/"); ok {
		var policy struct {
			Path []rule `hcl:"path"`
		}
		if err := hcl.Decode(&policy, fmt.Sprint(r.Data["policy"])); err != nil {
			return nil, err
		}
		s.policies[name] = policy.Path
		return nil, nil
	}
	switch r.Path {
	case "auth/token/create":
		var login logical.Auth
		names, _ := r.Data["policies"].([]any)
		for _, name := range names {
			login.Policies = append(login.Policies, fmt.Sprint(name))
		}
		s.issue(&login)
		return &logical.Response{Auth: &login}, nil
	case "sys/seal":
		s.sealed = true
		return nil, nil
	}
	return nil, logical.ErrUnsupportedPath
}

func (s *server) mount(ctx context.Context, at string, factory logical.Factory) error {
	storage := &logical.InmemStorage{}
	backend, err := factory(ctx, &logical.BackendConfig{
		StorageView: storage, Logger: log.New(&log.LoggerOptions{Level: log.Error}),
		System: logical.StaticSystemView{DefaultLeaseTTLVal: month, MaxLeaseTTLVal: month},
	})
	if err != nil {
		return err
	}
	s.mounts[at] = mount{backend, storage}
	return backend.Initialize(ctx, &logical.InitializationRequest{Storage: storage})
}
