package main

import (
	"encoding/base64"
	"flag"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/internal/cloud/cloudtest"
	"github.com/machineadm/machineadm/plugins/internal/cloud/google"
	"github.com/machineadm/machineadm/sdk"
)

var update = flag.Bool("update", false, "renew the golden files")

// TestViolations: all violations of a document at once, none with a value. Each case of the golden file is a spec.
func TestViolations(t *testing.T) {
	t.Parallel()
	cloudtest.Violations(t, *update, v1alpha1.KindEncryptedConfig, func(doc []byte) error {
		_, err := sdk.NewKeyProvider(provider(google.Service{}), runtime.GOOS).Passphrase(t.Context(), pluginv1.PassphraseRequest{
			Document: doc, Target: target.Target{OS: runtime.GOOS}, ValidateOnly: true,
		})
		return err
	})
}

// FuzzParse: what is accepted is what is written, and a path of a request that it makes has no other segments.
func FuzzParse(f *testing.F) {
	f.Add("gcpkms://AAAA@projects/p/locations/global/keyRings/r/cryptoKeys/k")
	f.Add("gcpkms://AA@projects/../locations/global/keyRings/r/cryptoKeys/k")
	f.Fuzz(func(t *testing.T, uri string) {
		encrypted, key, ok := parse(uri)
		if !ok {
			return
		}
		require.Equal(t, uri, "gcpkms://"+base64.StdEncoding.EncodeToString(encrypted)+"@"+key)
		r, err := http.NewRequest(http.MethodPost, "https://a/v1/"+key+":decrypt", nil)
		require.NoError(t, err)
		require.Equal(t, "/v1/"+key+":decrypt", r.URL.EscapedPath())
		require.Len(t, strings.Split(key, "/"), 8)
	})
}
