package stores

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// stored is the name of an object of these tests.
const stored = "machine-1-0123456789abcdef"

// storage is a storage of a plugin.
func storage(t testing.TB, prefix, access string, config any) pluginv1.Storage {
	t.Helper()
	data, err := json.Marshal(config)
	require.NoError(t, err)
	return pluginv1.Storage{URIPrefix: prefix, Access: access, ProviderConfig: data, Target: here()}
}

// store stores an object for an hour, with a place for its report.
func (p plugin) store(at pluginv1.Storage, text string) (pluginv1.Stored, *pluginv1.Error) {
	p.t.Helper()
	s, err := p.process.Store(p.t.Context(), pluginv1.StoreRequest{Storage: at, Name: stored, Data: []byte(text), Expiry: time.Hour, Report: true})
	return s, p.failure(err)
}

// keeps stores an object twice, follows the references with the plugin of a machine, reads the report of the machine back, and removes both
// twice. It returns the last reference.
func (p plugin) keeps(machine plugin, at pluginv1.Storage) pluginv1.Stored {
	t := p.t
	t.Helper()
	var s pluginv1.Stored
	for i, text := range []string{"replaced", stream} {
		var e *pluginv1.Error
		s, e = p.store(at, text)
		require.Nil(t, e)
		assert.NotContains(t, s.URI+s.ReportURI, "?", "what grants access is no part of a URI")
		own := json.RawMessage(s.ProviderConfig)
		o, e := machine.fetch(s.URI, own)
		require.Nil(t, e)
		assert.Equal(t, text, string(o.data))
		report := fmt.Sprintf(`{"report": %d}`, i)
		require.Nil(t, machine.report(s.URI, s.ReportURI, own, uint64(i+1), report))
		o, e = p.fetch(at.URIPrefix+stored+".report.json", json.RawMessage(at.ProviderConfig))
		require.Nil(t, e)
		assert.Equal(t, report, string(o.data))
	}
	for range 2 {
		require.Nil(t, p.failure(p.process.Remove(t.Context(), pluginv1.RemoveRequest{Storage: at, Name: stored})))
		for _, suffix := range []string{"", ".report.json"} {
			_, e := p.fetch(at.URIPrefix+stored+suffix, json.RawMessage(at.ProviderConfig))
			require.NotNil(t, e, suffix)
		}
	}
	return s
}
