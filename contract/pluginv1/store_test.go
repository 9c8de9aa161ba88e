package pluginv1_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

func TestStoreOverTheWire(t *testing.T) {
	t.Parallel()
	in := pluginv1.Storage{URIPrefix: "x://a/", Access: pluginv1.AccessPresigned, ProviderConfig: []byte(`{"a":1}`), Target: wholeTarget()}
	storing := pluginv1.StoreRequest{
		Storage: in, Name: "a-1", Data: []byte("\x00\xff"), Expiry: time.Hour, Report: true, RetryFor: 90 * time.Second,
	}
	removing := pluginv1.RemoveRequest{Storage: in, Name: "a-1", RetryFor: time.Minute}
	whole := pluginv1.Stored{
		Provider: "http", URI: "https://a/1", ProviderConfig: []byte(`{"query":{"value":"s"}}`), ReportURI: "https://a/2",
		Expires: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
	}
	answer := whole
	client := serveDescriber(t, &fakeSource{
		store: func(r pluginv1.StoreRequest) (pluginv1.Stored, error) {
			assert.Equal(t, storing, r)
			return answer, nil
		},
		remove: func(r pluginv1.RemoveRequest) error { assert.Equal(t, removing, r); return nil },
	})
	for _, answer = range []pluginv1.Stored{whole, {URI: "x://a/a-1"}} {
		got, err := client.Store(t.Context(), storing)
		require.NoError(t, err)
		assert.Equal(t, answer, got)
	}
	require.NoError(t, client.Remove(t.Context(), removing))
}

// TestWrongReferences: a reference that no document can have is a defect of the plugin, and its error quotes nothing of it.
func TestWrongReferences(t *testing.T) {
	t.Parallel()
	const canary = "c4n4ry"
	long := canary + strings.Repeat("x", pluginv1.MaxTextBytes)
	for says, tt := range map[string]struct {
		request pluginv1.StoreRequest
		answer  pluginv1.Stored
		clause  string
	}{
		"without a URI":                {answer: pluginv1.Stored{ReportURI: canary}, clause: "P-56"},
		"a text of":                    {answer: pluginv1.Stored{URI: long}, clause: "P-56"},
		"a providerConfig that":        {answer: pluginv1.Stored{URI: "x", ProviderConfig: []byte(`["` + canary + `"]`)}, clause: "P-56"},
		"or larger than 65536 bytes":   {answer: pluginv1.Stored{URI: "x", ProviderConfig: []byte(`{"a":"` + strings.Repeat(canary, 11<<10) + `"}`)}, clause: "P-56"},
		"a place for a report":         {answer: pluginv1.Stored{URI: "x", ReportURI: canary}, clause: "P-56"},
		"only to validate the storage": {pluginv1.StoreRequest{ValidateOnly: true}, pluginv1.Stored{URI: canary}, "P-43"},
	} {
		_, err := serveDescriber(t, &fakeSource{
			store: func(pluginv1.StoreRequest) (pluginv1.Stored, error) { return tt.answer, nil },
		}).Store(t.Context(), tt.request)
		requireBreach(t, err, tt.clause, says)
		assert.NotContains(t, err.Error(), canary)
	}
}
