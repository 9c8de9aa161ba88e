package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
)

// sharing is a stream of Sysctl documents, each with a parameter of its own and, unless its value is empty, the shared one.
func sharing(values ...string) string {
	var documents []string
	for i, value := range values {
		name := string(rune('a' + i))
		text := fmt.Sprintf("apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Sysctl\nmetadata: {name: %s}\nspec:\n  parameters:\n    kernel.%s: 1\n",
			name, map[string]string{"a": "panic", "b": "panic_on_oops"}[name])
		if value != "" {
			text += "    net.core.somaxconn: " + value + "\n"
		}
		documents = append(documents, text)
	}
	return strings.Join(documents, "---\n")
}

// TestSharedParameter: documents that share a parameter change it together, and what a former stream left does not win.
func TestSharedParameter(t *testing.T) {
	b := newBench(t)
	b.install(sysctlBinary, sysctlBinary, "")
	values := func() string {
		var all []string
		for _, name := range []string{"a", "b"} {
			data, err := os.ReadFile(filepath.Join(b.root, "etc/sysctl.d/99-machineadm-"+name+".conf"))
			require.NoError(t, err)
			_, value, _ := strings.Cut(string(data), "net.core.somaxconn = ")
			all = append(all, strings.TrimSpace(value))
		}
		return strings.Join(all, " ")
	}
	for _, step := range []struct{ stream, want string }{
		{sharing("1024", "1024"), "1024 1024"},
		{sharing("2048", "2048"), "2048 2048"},
		{sharing("4096"), "4096 4096"}, // b is of a former stream, and would win at boot
		{sharing("512", ""), "512 "},
		{sharing("", "256"), " 256"},
	} {
		got := b.apply(step.stream)
		require.Equal(t, report.ExitOK, got.code, got.String())
		assert.Equal(t, step.want, values())
		got = b.apply(step.stream)
		require.Equal(t, report.ExitOK, got.code, got.String())
		assert.NotContains(t, got.String(), "file:", "it converged")
	}
	got := b.apply(sharing("1", "2"))
	assert.Equal(t, report.ExitUsage, got.code, got.String())
	assert.Equal(t, " 256", values())
}
