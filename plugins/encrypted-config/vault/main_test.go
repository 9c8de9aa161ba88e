package main

import (
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/internal/cloud/cloudtest"
	"github.com/machineadm/machineadm/sdk"
)

var update = flag.Bool("update", false, "renew the golden files")

const canary = cloudtest.Canary

func here() target.Target { return target.Target{OS: runtime.GOOS} }

// TestViolations: all violations of a document at once, none with a value. Each case of the golden file is a spec.
func TestViolations(t *testing.T) {
	t.Parallel()
	cloudtest.Violations(t, *update, v1alpha1.KindEncryptedConfig, func(doc []byte) error {
		_, err := sdk.NewKeyProvider(provider(), runtime.GOOS).Passphrase(t.Context(), pluginv1.PassphraseRequest{
			Document: doc, Target: target.Target{OS: runtime.GOOS}, ValidateOnly: true,
		})
		return err
	})
}

// TestNewPassphraseViolations: the key of --key, and its configuration.
func TestNewPassphraseViolations(t *testing.T) {
	t.Parallel()
	_, err := sdk.NewKeyProvider(provider(), runtime.GOOS).NewPassphrase(t.Context(), pluginv1.NewPassphraseRequest{
		Key: "transit/" + canary, Target: here(), ProviderConfig: []byte(`{}`),
	})
	e := pluginv1.AsError(err)
	assert.Equal(t, pluginv1.CodeInvalidConfig, e.Code, "%v", e)
	assert.Len(t, e.Violations, 2)
	assert.NotContains(t, fmt.Sprintf("%+v", *e), canary)
}

// FuzzParse: what is accepted is what is written, and a path of a request that it makes has no other segments.
func FuzzParse(f *testing.F) {
	f.Add("vault://vault:v1:AbC+/w==@a.example:8200/transit/machines")
	f.Add("vault://vault:v1:AA@[::1]/team/transit/machines.1")
	f.Add("vault://vault:v1:AA@a/../b")
	f.Add("vault://vault:v1:AA@a?b/b/c%2f")
	f.Fuzz(func(t *testing.T, uri string) {
		encrypted, at, ok := parse(uri)
		if !ok {
			return
		}
		require.Equal(t, uri, "vault://"+encrypted+"@"+at.String())
		r, err := http.NewRequest(http.MethodPost, at.server.String()+"/v1/"+at.mount+"/decrypt/"+at.name, nil)
		require.NoError(t, err)
		require.Equal(t, "/v1/"+at.mount+"/decrypt/"+at.name, r.URL.EscapedPath())
		require.Empty(t, r.URL.RawQuery)
	})
}

// TestServers: a URL with two meanings is refused.
func TestServers(t *testing.T) {
	t.Parallel()
	cloudtest.OneMeaning(t, func(server string) (*url.URL, bool) {
		at, isHTTPS := strings.CutPrefix(server, "https://")
		k, ok := parseKey(at + "/transit/node")
		return k.server, isHTTPS && ok
	})
}
