package controller

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// metadata: the manager watches the metadata of Secrets alone. Of one that no config refers to, its memory has the name, and not the value.
func (r *rig) metadata(t *testing.T) {
	const name, value = "of-no-config-at-all", "v4lue-of-no-config-at-all"
	r.put(t, secret(name, map[string]string{"key": value}))
	require.Eventually(t, func() bool { return r.remembers(t, name) }, soon, soon/30, "the manager watches no Secrets")
	require.False(t, r.remembers(t, value))
	require.False(t, r.remembers(t, base64.StdEncoding.EncodeToString([]byte(value))))
}

// remembers reports whether a text is in the memory of the manager.
func (r *rig) remembers(t *testing.T, text string) bool {
	t.Helper()
	process := fmt.Sprintf("/proc/%d/", r.manager.PID())
	maps, err := os.ReadFile(process + "maps")
	require.NoError(t, err)
	memory, err := os.Open(process + "mem")
	require.NoError(t, err)
	defer func() { require.NoError(t, memory.Close()) }()
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		var rights string
		_, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &rights)
		require.NoError(t, err, line)
		if !strings.HasPrefix(rights, "rw") {
			continue
		}
		data := make([]byte, to-from)
		n, _ := memory.ReadAt(data, int64(from)) // a page can be gone since
		if bytes.Contains(data[:n], []byte(text)) {
			return true
		}
	}
	return false
}
