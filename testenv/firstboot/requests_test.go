package firstboot

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// TestRequestedRebootOnANode: on a booted node, a requested reboot stays due through a failed document, a plugin
// that crashes, another stream and a killed run, and is gone after the reboot.
func TestRequestedRebootOnANode(t *testing.T) {
	t.Parallel()
	asks := noop("asks", "touch: [/var/asks], reboot: AfterRun")
	files := map[string]string{
		"/fails.yaml": asks + noop("fails", "touch: [/var/fails], apply: fail"), "/crashes.yaml": asks + noop("crashes", "touch: [/var/crashes], apply: crash"),
		"/hangs.yaml": asks + noop("hangs", "touch: [/var/hangs], apply: hangForever"), "/other.yaml": noop("other", "touch: [/var/other]"), "/good.yaml": asks,
	}
	n := boot(t, func(root string) error {
		for path, content := range files {
			if err := write(root, path, content, 0o600); err != nil {
				return err
			}
		}
		return nil
	})
	run := func(argv ...string) nodes.Result {
		t.Helper()
		r, err := n.Exec(t.Context(), argv...)
		require.NoError(t, err)
		return r
	}
	for _, step := range []struct {
		argv []string
		exit int
	}{
		{[]string{"machineadm", "apply", "--path", "/fails.yaml"}, report.ExitPrecondition},
		{[]string{"machineadm", "apply", "--path", "/crashes.yaml"}, report.ExitFailed},
		{[]string{"sh", "-c", "timeout -s KILL 3 machineadm apply --path /hangs.yaml; test $? = 137"}, 0},
		{[]string{"machineadm", "apply", "--path", "/other.yaml"}, report.ExitReboot},
		{[]string{"machineadm", "apply", "--path", "/good.yaml"}, report.ExitReboot},
		{[]string{"machineadm", "plan", "--path", "/good.yaml"}, report.ExitDiffers},
	} {
		r := run(step.argv...)
		assert.Equal(t, step.exit, r.ExitCode, "%q\n%s%s", step.argv, r.Stdout, r.Stderr)
		assert.Contains(t, run("machineadm", "status").Stdout, "a reboot is pending: Noop/asks", "after %q", step.argv)
	}
	gone(t, n, sentinel)
	require.NoError(t, n.Reboot(t.Context()))
	r := run("machineadm", "apply", "--path", "/good.yaml")
	assert.Equal(t, report.ExitOK, r.ExitCode, r.Stderr)
	n.MustExec(t, "test", "-s", sentinel)
}
