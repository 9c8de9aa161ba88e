package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
)

// TestClosedPipe: a command whose reader has ended says nothing.
func TestClosedPipe(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version"}, {"version", "-o", "json"}, {"explain", "Sysctl"}} {
		read, write, err := os.Pipe()
		require.NoError(t, err)
		require.NoError(t, read.Close())
		var errOut strings.Builder
		assert.Equal(t, report.ExitOK, Execute(t.Context(), args, streams{in: strings.NewReader(""), out: write, err: &errOut}), args)
		assert.Empty(t, errOut.String(), args)
		require.NoError(t, write.Close())
	}
}

// TestCommandsOfKubeadm: they name the document that does the same.
func TestCommandsOfKubeadm(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"init", "--config", "x"}, {"join", "10.0.0.1:6443", "--token", "x"}, {"reset", "-f"}} {
		got := execute(t, nil, args...)
		assert.Equal(t, report.ExitUsage, got.code, args)
		assert.Contains(t, got.errOut, "machineadm has no command \""+args[0]+"\": a KubernetesNode document", args)
		assert.Contains(t, got.errOut, "machineadm explain KubernetesNode", args)
	}
	assert.NotContains(t, execute(t, nil, "--help").out, "\n  join")
}

// TestCompletionOfFields: behind a kind and a dot are its fields, at every depth.
func TestCompletionOfFields(t *testing.T) {
	t.Parallel()
	complete := func(begun string) string { return execute(t, nil, "__complete", "explain", begun).out }
	assert.Contains(t, complete("Sys"), "Sysctl\n")
	assert.Contains(t, complete("Sysctl."), "Sysctl.parameters\n")
	assert.Contains(t, complete("Sysctl.ignore"), "Sysctl.ignoreMissing\n")
	assert.NotContains(t, complete("Sysctl.ignore"), "Sysctl.parameters\n")
	assert.Contains(t, complete("ContainerRuntime.registries.mirrors."), "ContainerRuntime.registries.mirrors.url")
	assert.NotContains(t, complete("Nothing."), "Nothing")
	assert.NotContains(t, complete("Sysctl.nothing."), "Sysctl")
}
