package main

import (
	"flag"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/internal/cloud/azure"
	"github.com/machineadm/machineadm/plugins/internal/cloud/cloudtest"
	"github.com/machineadm/machineadm/sdk"
)

var update = flag.Bool("update", false, "renew the golden files")

// TestViolations: all violations of a document at once, none with a value. Each case of the golden file is a spec.
func TestViolations(t *testing.T) {
	t.Parallel()
	cloudtest.Violations(t, *update, v1alpha1.KindEncryptedConfig, func(doc []byte) error {
		_, err := sdk.NewKeyProvider(provider(azure.Tokens{}), runtime.GOOS).Passphrase(t.Context(), pluginv1.PassphraseRequest{
			Document: doc, Target: target.Target{OS: runtime.GOOS}, ValidateOnly: true,
		})
		return err
	})
}

// FuzzParse: what is accepted is what is written, and a path of a request that it makes has no other segments.
func FuzzParse(f *testing.F) {
	f.Add("azurekeyvault://AAAA@a.vault.azure.net/keys/machines/0123456789abcdef0123456789abcdef")
	f.Add("azurekeyvault://AA@a?b/keys/../0123456789abcdef0123456789abcdef")
	f.Fuzz(func(t *testing.T, uri string) {
		encrypted, at, ok := parse(uri)
		if !ok {
			return
		}
		require.Equal(t, uri, "azurekeyvault://"+encrypted+"@"+at.String())
		r, err := http.NewRequest(http.MethodPost, "https://"+at.String()+"/unwrapkey"+query, nil)
		require.NoError(t, err)
		require.Equal(t, "/keys/"+at.name+"/"+at.version+"/unwrapkey", r.URL.EscapedPath())
		require.Equal(t, query, "?"+r.URL.RawQuery)
	})
}

// TestServers: the token of the machine is for Azure alone, by whatever trick of a URL another server is named.
func TestServers(t *testing.T) {
	t.Parallel()
	cloudtest.Tricks(t, "a.vault.azure.net", func(server string) bool {
		at, isHTTPS := strings.CutPrefix(server, "https://")
		return !isHTTPS || len(validate(sdk.Key{URI: "azurekeyvault://YQ@" + at + "/keys/a/" + strings.Repeat("0", 32)})) > 0
	})
}
