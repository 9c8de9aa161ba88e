package main

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/plugins/internal/cloud/google"
	"github.com/machineadm/machineadm/sdk"
)

var update = flag.Bool("update", false, "renew the golden files")

const canary = "c4n4ry-of-the-document"

// TestViolations: all violations of a document at once, none with a value. Each case of the golden file is a spec.
func TestViolations(t *testing.T) {
	t.Parallel()
	const file = "testdata/violations.golden"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var got strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "{") {
			continue
		}
		fmt.Fprint(&got, line)
		doc, err := json.Marshal(map[string]any{
			"apiVersion": "machineadm.cluster.x-k8s.io/v1alpha1", "kind": "EncryptedConfig", "metadata": map[string]any{"name": "a"},
			"spec": json.RawMessage(strings.ReplaceAll(line, "CANARY", canary)),
		})
		require.NoError(t, err)
		_, err = sdk.NewKeyProvider(provider(google.Service{}), runtime.GOOS).Passphrase(t.Context(), pluginv1.PassphraseRequest{
			Document: doc, Target: target.Target{OS: runtime.GOOS}, ValidateOnly: true,
		})
		if err != nil {
			for _, v := range pluginv1.AsError(err).Violations {
				fmt.Fprintf(&got, "  %s: %s (%s)\n", v.Field, v.Message, v.Hint)
			}
		}
	}
	assert.NotContains(t, got.String(), canary)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got.String()), 0o644)) //nolint:gosec // a golden file
	}
	assert.Equal(t, string(text), got.String())
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
