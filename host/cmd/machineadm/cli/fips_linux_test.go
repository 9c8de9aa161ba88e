package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
)

// TestApprovedAlgorithms: the host encrypts, decrypts and applies where Go refuses every algorithm that FIPS 140-3 does not approve.
func TestApprovedAlgorithms(t *testing.T) {
	b := newBench(t)
	b.noop("")
	b.keys(nil)
	restricted := func(args ...string) result {
		c := b.process(args...)
		c.Env = append(os.Environ(), "GODEBUG=fips140=only")
		return output(t, c)
	}
	sealed := restricted("encrypt", "--path", b.stream(plain("a")), "--name", "sealed", "--provider", "test", "--key", "key://a")
	require.Equal(t, report.ExitOK, sealed.code, "%s", sealed)
	file := filepath.Join(b.dir, "sealed.yaml")
	write(t, file, sealed.out)
	assert.Equal(t, result{out: plain("a")}, restricted("decrypt", "--path", file))
	b.source(map[string]any{"objects": map[string]any{"test://outer": object(sealed.out)}})
	got := restricted("apply", "--root", b.root, "--allow-secrets", "--path", b.stream(reference("outer")))
	assert.Equal(t, report.ExitOK, got.code, "%s", got)
	assert.FileExists(t, filepath.Join(b.root, "a"))
}
