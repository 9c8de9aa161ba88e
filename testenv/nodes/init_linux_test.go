package nodes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/testenv/nodes"
)

// TestInit: a node without systemd as PID 1 boots, runs commands, and is started again when it reboots itself.
func TestInit(t *testing.T) {
	t.Parallel()
	for init, c := range map[nodes.Init]struct {
		process string
		reboot  []string
	}{
		nodes.OpenRC: {"openrc-init\n", []string{"openrc-shutdown", "--reboot", "now"}},
		nodes.Runit:  {"runit\n", []string{"init", "6"}},
	} {
		t.Run(string(init), func(t *testing.T) {
			t.Parallel()
			n := nodes.Boot(t, nodes.Options{Suite: nodes.Bookworm, Init: init})
			assert.Equal(t, c.process, n.MustExec(t, "cat", "/proc/1/comm").Stdout)
			before := n.MustExec(t, "cat", "/proc/sys/kernel/random/boot_id").Stdout
			n.MustExec(t, c.reboot...)
			require.Eventually(t, func() bool {
				if n.Settle(t.Context()) != nil {
					return false
				}
				now, err := n.Exec(t.Context(), "cat", "/proc/sys/kernel/random/boot_id")
				return err == nil && now.ExitCode == 0 && now.Stdout != before
			}, time.Minute, 100*time.Millisecond)
		})
	}
}
