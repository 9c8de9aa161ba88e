package run

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/envelope"
)

// TestExpandLimits: the size and the number of documents of a stream are counted with the streams of all its references.
func TestExpandLimits(t *testing.T) {
	t.Parallel()
	things := func(prefix string, n int) string {
		var all strings.Builder
		for i := range n {
			all.WriteString(thing(fmt.Sprint(prefix, i)))
		}
		return all.String()
	}
	padded := func(name string) string {
		return thing(name) + strings.Repeat("# "+strings.Repeat("x", 1021)+"\n", 9<<10)
	}
	for name, tt := range map[string]struct {
		one, two string
		exit     int
		says     string
	}{
		"9 MiB twice":            {padded("a"), padded("b"), report.ExitUsage, "the streams together hold more than 16777216 bytes"},
		"9 MiB once":             {padded("a"), thing("b"), report.ExitOK, ""},
		"6,000 documents twice":  {things("a", 6000), things("b", 6000), report.ExitUsage, "the streams together hold more than 10000 documents"},
		"documents of one alone": {things("a", 10001), thing("b"), report.ExitUsage, "10000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.add("x")
			s := w.serve("web", map[string]string{"u:1": tt.one, "u:2": tt.two})
			stream := remote("r", "u:1") + remote("s", "u:2") + thing("last")
			got := w.execute(Options{Mode: ModeApply, Text: []byte(stream)})
			require.Equal(t, tt.exit, got.ExitCode, errorsOf(got))
			assert.Contains(t, errorsOf(got), tt.says)
			assert.Equal(t, int64(document.MaxStreamBytes-len(stream)), s.requests[0].MaxBytes)
			if len(s.requests) > 1 {
				assert.Equal(t, int64(document.MaxStreamBytes-len(stream)-len(tt.one)), s.requests[1].MaxBytes, "the plugin sends no more than is left")
			}
			assert.Equal(t, tt.exit == report.ExitOK, strings.Contains(w.lines(), "apply"))
		})
	}
}

// TestExpandReadsNoFiles: what comes from the network names no file of the machine, not as a key either, and not within an
// encrypted stream. A file that the machine is started with may name one.
func TestExpandReadsNoFiles(t *testing.T) {
	t.Parallel()
	file := reference("RemoteConfig", "f", "{provider: file, uri: /etc/shadow}")
	sealed, err := envelope.Seal("e", "file", "file:///key", nil, []byte(passphrase), []byte(thing("a")))
	require.NoError(t, err)
	text, err := json.Marshal(sealed)
	require.NoError(t, err)
	key := "---\n" + string(text) + "\n"
	within := encrypted(t, "e", file)
	for name, tt := range map[string]struct {
		stream, object, refused string
	}{
		"a key":                        {remote("r", "u:1"), key, "EncryptedConfig/e"},
		"within an encrypted stream":   {remote("r", "u:1"), within, "RemoteConfig/f"},
		"a key of the stream itself":   {key, "", ""},
		"within the stream's own":      {within, "", ""},
		"deeper, by another reference": {remote("r", "u:1"), encrypted(t, "d", within), "RemoteConfig/f"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.add("x")
			w.serve("file", map[string]string{"/etc/shadow": thing("a")})
			w.serve("web", map[string]string{"u:1": tt.object})
			got := w.execute(Options{Mode: ModeApply, Text: []byte(tt.stream + thing("last"))})
			if tt.refused == "" {
				assert.Equal(t, report.ExitOK, got.ExitCode, errorsOf(got))
				return
			}
			assert.Equal(t, report.ExitUsage, got.ExitCode, errorsOf(got))
			require.Len(t, got.Errors, 1)
			assert.Equal(t, tt.refused, got.Errors[0].Document)
			assert.Equal(t, "spec.provider", got.Errors[0].Field)
			assert.Contains(t, got.Errors[0].Message, "must not read files of the machine")
			assert.NotContains(t, w.lines(), "fetch /etc/shadow")
			assert.NotContains(t, w.lines(), "apply")
		})
	}
}
