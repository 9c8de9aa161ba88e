package sdk_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

func TestErrorParts(t *testing.T) {
	t.Parallel()
	facts := map[string]string{"phase": "preflight"}
	at := func(field, message, hint string) []sdk.Violation {
		return []sdk.Violation{{Field: field, Message: message, Hint: hint}}
	}
	full := &fs.PathError{Op: "write", Path: "/etc/x", Err: syscall.ENOSPC}
	for name, c := range map[string]struct {
		err  error
		want pluginv1.Error
	}{
		"at": {
			sdk.At(sdk.Precondition("not yet", "wait"), "spec.a"),
			pluginv1.Error{Code: pluginv1.CodePrecondition, Message: "not yet", Hint: "wait", Violations: at("spec.a", "not yet", "wait")},
		},
		"at, wrapped": {
			sdk.At(fmt.Errorf("plan: %w", sdk.Unsupported("", "no", "")), "spec.a"),
			pluginv1.Error{Code: pluginv1.CodeUnsupported, Message: "no", Violations: at("spec.a", "no", "")},
		},
		"at, retry": {sdk.At(sdk.Retry(0, "busy"), "spec.a"), pluginv1.Error{Code: pluginv1.CodeRetry, Message: "busy"}},
		"several": {
			sdk.Preconditions(sdk.Violation{Field: "a", Message: "x"}, sdk.Violation{Field: "b", Message: "y"}),
			pluginv1.Error{
				Code: pluginv1.CodePrecondition, Message: "the machine is not ready for the document",
				Violations: []sdk.Violation{{Field: "a", Message: "x"}, {Field: "b", Message: "y"}},
			},
		},
		"one": {
			sdk.Preconditions(at("a", "x", "do y")...),
			pluginv1.Error{Code: pluginv1.CodePrecondition, Message: "x", Hint: "do y", Violations: at("a", "x", "do y")},
		},
		"facts": {
			sdk.WithFacts(sdk.WithFacts(sdk.Precondition("no", ""), facts), map[string]string{"check": "Port-6443"}),
			pluginv1.Error{
				Code: pluginv1.CodePrecondition, Message: "no",
				Facts: map[string]string{"phase": "preflight", "check": "Port-6443"},
			},
		},
		"final": {
			sdk.Final(sdk.Precondition("no", "")),
			pluginv1.Error{Code: pluginv1.CodePrecondition, Message: "no", Final: true},
		},
		"needs": {
			sdk.Needs(sdk.Precondition("no", "load it"), "module:"),
			pluginv1.Error{Code: pluginv1.CodePrecondition, Message: "no", Hint: "load it", Violations: []sdk.Violation{{Message: "no", Hint: "load it", Needs: "module:"}}},
		},
		"needs, at": {
			sdk.Needs(sdk.At(sdk.Precondition("no", ""), "spec.a"), "clock:"),
			pluginv1.Error{Code: pluginv1.CodePrecondition, Message: "no", Violations: []sdk.Violation{{Field: "spec.a", Message: "no", Needs: "clock:"}}},
		},
		"needs, retry": {sdk.Needs(sdk.Retry(0, "busy"), "clock:"), pluginv1.Error{Code: pluginv1.CodeRetry, Message: "busy"}},
		"final, of the machine": {
			sdk.Final(fmt.Errorf("write it: %w", machine.ErrTooLarge)),
			pluginv1.Error{
				Code: pluginv1.CodePrecondition, Message: "write it: file too large", Final: true,
				Hint: "move it away, then run again: something else stands in its place",
			},
		},
		"facts, of the machine": {
			sdk.WithFacts(full, facts),
			pluginv1.Error{
				Code: pluginv1.CodePrecondition, Message: full.Error(), Facts: facts,
				Hint: "free some space on that file system (df), or some inodes (df -i), then run again",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := connect(t, configurator(func(context.Context, sdk.Machine, probe) (sdk.Plan, error) { return sdk.Plan{}, c.err }))
			_, err := client.Plan(t.Context(), live(document(`{}`)))
			assert.Equal(t, &c.want, pluginv1.AsError(err))
		})
	}
	for _, amend := range []func(error) error{
		func(err error) error { return sdk.At(err, "spec") }, func(err error) error { return sdk.WithFacts(err, facts) },
		func(err error) error { return sdk.WithDetail(err, "x") }, sdk.Final,
	} {
		require.NoError(t, amend(nil))
	}
	require.ErrorIs(t, sdk.At(fmt.Errorf("ask: %w", context.Canceled), "spec"), context.Canceled)
}

// TestNetworkErrors: an error of the network is no defect of the plugin.
func TestNetworkErrors(t *testing.T) {
	t.Parallel()
	get := func(url string) error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		response, err := (&http.Client{Transport: &http.Transport{}}).Do(request)
		if err == nil {
			_ = response.Body.Close()
			t.Fatal("it answered")
		}
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	refusing := listener.Addr().String()
	require.NoError(t, listener.Close())
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	_, addressErr := net.DialTimeout("tcp", "[::1", 0)
	wrapped := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for name, c := range map[string]struct {
		err  error
		code pluginv1.Code
		hint string
	}{
		"refused":         {get("http://" + refusing), pluginv1.CodeRetry, ""},
		"no TLS":          {get("https://" + plain.Listener.Addr().String()), pluginv1.CodePrecondition, "TLS"},
		"no answer":       {&url.Error{Op: "Get", URL: "http://x", Err: io.EOF}, pluginv1.CodeRetry, ""},
		"no URL":          {&url.Error{Op: "parse", URL: "x", Err: errors.New("no")}, pluginv1.CodeInternal, ""},
		"other authority": {get(secure.URL), pluginv1.CodePrecondition, "trusts its certificate authority"},
		"address":         {addressErr, pluginv1.CodePrecondition, "correct the address"},
		"no such name":    {wrapped(&net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}), pluginv1.CodePrecondition, "name servers"},
		"no name server":  {wrapped(&net.DNSError{Err: "server misbehaving", Name: "x", IsTemporary: true}), pluginv1.CodeRetry, ""},
		"time-out":        {wrapped(&net.DNSError{Err: "i/o timeout", IsTimeout: true}), pluginv1.CodeRetry, ""},
		"unreachable":     {fmt.Errorf("ask: %w", syscall.ENETUNREACH), pluginv1.CodeRetry, ""},
		"alert":           {wrapped(tls.AlertError(40)), pluginv1.CodePrecondition, "TLS"},
		"something else":  {errors.New("oops"), pluginv1.CodeInternal, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := configurator(func(context.Context, sdk.Machine, probe) (sdk.Plan, error) { return sdk.Plan{}, c.err })
			_, err := m.Plan(t.Context(), live(document(`{}`)))
			wantCode(t, err, c.code, c.hint)
		})
	}
}
