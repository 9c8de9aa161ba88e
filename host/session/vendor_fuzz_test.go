package session

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/naming"
)

// FuzzDefaults: whatever a defaults file holds, what comes out of it can be made a binary's name.
func FuzzDefaults(f *testing.F) {
	for _, seed := range []string{
		"", "# none\n", "Timesync: chronyd\n", "Timesync: chronyd\nSysctl: procfs\n", "Noop: ../../bin/sh\n", "- Noop\n",
		"a: {b: c}\n", "Timesync: *x\n", "Timesync: chronyd\nTimesync: ntpd\n", "Timesync: 1e400\n", "\xef\xef", "---\n---\n",
		"\"Time\\0sync\": x\n", "Timesync: !!binary eA==\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := parseDefaults("defaults.yaml", data)
		if err != nil {
			for _, e := range inputErrors("defaults.yaml", err) {
				assert.NotEmpty(t, e.Message)
			}
			return
		}
		for kind, provider := range all {
			assert.NoError(t, naming.ValidKind(kind))
			assert.NoError(t, naming.ValidProvider(provider))
		}
	})
}
