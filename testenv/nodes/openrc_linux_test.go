package nodes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/testenv/nodes"
)

// TestOpenRC: a node without systemd as PID 1 boots, runs commands, and is started again when it reboots itself.
func TestOpenRC(t *testing.T) {
	t.Parallel()
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Bookworm, OpenRC: true})
	assert.Equal(t, "openrc-init\n", n.MustExec(t, "cat", "/proc/1/comm").Stdout)
	before := n.MustExec(t, "cat", "/proc/sys/kernel/random/boot_id").Stdout
	n.MustExec(t, "openrc-shutdown", "--reboot", "now")
	require.Eventually(t, func() bool {
		if n.Settle(t.Context()) != nil {
			return false
		}
		now, err := n.Exec(t.Context(), "cat", "/proc/sys/kernel/random/boot_id")
		return err == nil && now.ExitCode == 0 && now.Stdout != before
	}, time.Minute, 100*time.Millisecond)
}
