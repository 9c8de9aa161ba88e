package aws

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// object is the name of a stored object.
const object = "machine-1-0123456789abcdef"

// storage is a storage of a plugin.
func (p process) storage(t testing.TB, prefix, access string, config map[string]any) pluginv1.Storage {
	t.Helper()
	data, err := json.Marshal(config)
	require.NoError(t, err)
	return pluginv1.Storage{URIPrefix: prefix, Access: access, ProviderConfig: data, Target: here()}
}

// store stores an object for an hour, with a place for its report.
func (p process) store(t testing.TB, at pluginv1.Storage, text string) pluginv1.Stored {
	t.Helper()
	stored, err := p.Store(t.Context(), pluginv1.StoreRequest{Storage: at, Name: object, Data: []byte(text), Expiry: time.Hour, Report: true})
	require.NoError(t, err)
	return stored
}

// fetchStored fetches an object by its reference.
func (p process) fetchStored(t testing.TB, stored pluginv1.Stored) (string, error) {
	t.Helper()
	var config map[string]any
	require.NoError(t, json.Unmarshal(stored.ProviderConfig, &config))
	data, _, err := p.fetch(t, stored.URI, config)
	return string(data), err
}

func (p process) follow(t testing.TB, stored pluginv1.Stored) string {
	t.Helper()
	text, err := p.fetchStored(t, stored)
	require.NoError(t, err)
	return text
}

// reported sends a report by a reference.
func (p process) reported(t testing.TB, stored pluginv1.Stored, text string) error {
	t.Helper()
	return p.Report(t.Context(), pluginv1.ReportRequest{
		Document: document(t, "RemoteConfig", map[string]any{
			"provider": "http", "uri": stored.URI, "report": map[string]any{"uri": stored.ReportURI}, "providerConfig": json.RawMessage(stored.ProviderConfig),
		}),
		Target: here(), Report: []byte(text), Sequence: 1,
	})
}
