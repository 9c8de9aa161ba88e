package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
)

// TestWithdrawnObjectIsVisible: that a run uses an object which its source has withdrawn is on standard output and on standard error
// of every command that resolves it, in text and in JSON, in the report and in the status.
func TestWithdrawnObjectIsVisible(t *testing.T) {
	const uri, says = "test://outer", "the source has nothing for this machine any more; what an earlier try got is used"
	b := newBench(t)
	b.noop("")
	serve := func(withdrawn bool) {
		o := object(b.touch("one") + noopDoc("last", "touch: [/nonexistent/x], apply: fail"))
		if withdrawn {
			o["answer"], o["status"] = "precondition", "410"
		}
		b.source(map[string]any{"objects": map[string]any{uri: o}})
	}
	serve(false)
	got := b.live(reference("outer"))
	require.Equal(t, report.ExitPrecondition, got.code, "%s", got)
	require.NotContains(t, got.String(), says)
	serve(true)
	stream := b.stream(reference("outer"))
	for _, command := range []string{"resolve", "plan", "apply"} {
		for _, output := range []string{"text", "json"} {
			args := []string{command, "--path", stream, "--output", output}
			if command != "resolve" {
				args = append(args, "--phase", "preparation")
			}
			got := b.run(args...)
			assert.Contains(t, got.out, says, "%s -o %s: standard output", command, output)
			assert.Contains(t, got.errOut, says, "%s -o %s: standard error", command, output)
			assert.Contains(t, got.errOut, "RemoteConfig/outer", "%s -o %s", command, output)
			if output == "json" {
				assert.Contains(t, got.out, `"type":"warning"`, command)
			}
		}
	}
	assert.Contains(t, strings.Join(b.report().Documents[0].Warnings, "\n"), says)
	assert.Contains(t, b.run("status").out, "warning: "+says)
	assert.Contains(t, b.run("status", "--output", "json").out, says)
}
