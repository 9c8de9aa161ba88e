package services

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk/machine"
)

// TestStates: of units that have little in common, each is described as by a query of its own.
//
//machineadm:core
func TestStates(t *testing.T) {
	t.Parallel()
	eachSuite(t, func(t *testing.T, n node) {
		n.MustExec(t, "sh", "-c", "systemctl enable --now old.service; systemctl start new@a.service; "+
			"systemctl mask systemd-journald.service; systemctl mask --runtime wanted.service")
		want := []string{
			"old.service", "systemd-journald.service", "old-alias.service", "absent.service", "lines.service", "wanted.service",
			"dbus.socket", "multi-user.target", "new@a.service", "old.service", "fstrim.timer", "getty@tty1.service",
		}
		all := n.do(t, request{States: want}).States
		require.Len(t, all, len(want))
		for i, unit := range want {
			alone := n.do(t, request{States: []string{unit}}).States
			require.Len(t, alone, 1)
			assert.Equal(t, alone[0], all[i], unit)
		}
		state := map[string]machine.ServiceState{}
		for i, s := range all {
			state[want[i]] = s
		}
		old := state["old.service"]
		assert.True(t, old.Exists && old.Enabled && !old.Masked, "%+v", old)
		assert.Equal(t, old, state["old-alias.service"])
		assert.ElementsMatch(t, []string{"old.service", "old-alias.service"}, old.Names)
		assert.False(t, state["absent.service"].Exists)
		journal := state["systemd-journald.service"]
		assert.True(t, journal.Exists && journal.Masked && !journal.Enabled, "%+v", journal)
		assert.Equal(t, "masked", journal.FileState)
		assert.Equal(t, "active", journal.Active)
		assert.Equal(t, "masked-runtime", state["wanted.service"].FileState)
		assert.True(t, state["wanted.service"].Masked)
		assert.Equal(t, "ConditionVirtualization=!container", state["fstrim.timer"].Unmet)
		assert.Equal(t, "inactive ", state["getty@tty1.service"].Active+" "+state["getty@tty1.service"].Unmet, "a file decides it: /dev/tty0")
		assert.Equal(t, "lines.service", state["lines.service"].ID, "a line feed in a value begins no other one")
	})
}

// TestMaskedMeanwhile: an activation reports a unit that is masked while it runs, and what to do.
func TestMaskedMeanwhile(t *testing.T) {
	t.Parallel()
	eachSuite(t, func(t *testing.T, n node) {
		const masked, hint = "new.service is masked: it cannot be started", "systemctl unmask new.service"
		reset := func() {
			n.MustExec(t, "sh", "-c", "systemctl unmask new.service; systemctl disable --now old.service new.service; "+
				"echo good old >"+config+"; systemctl start new.service")
		}
		refused := func(r request, texts ...string) {
			t.Helper()
			r.Unit, r.Mask = "new.service", "new.service"
			a := n.do(t, r)
			assert.Equal(t, pluginv1.CodePrecondition, a.Code)
			assert.Contains(t, a.Hint, hint)
			for _, text := range append(texts, masked) {
				assert.Contains(t, a.Error, text)
			}
			assert.Equal(t, "good old\n", n.MustExec(t, "cat", config).Stdout)
			assert.Equal(t, "masked", n.say(t, "is-enabled", "new.service"))
		}
		for _, c := range []struct{ when, text string }{
			{"restarting", "the old configuration was restored, and new.service was not restarted"},
			{"enabling", "the old configuration was restored, but new.service could not be restarted with it and still runs as it was"},
		} {
			reset()
			refused(request{Config: "good new\n", When: c.when, Enable: true}, c.text)
			assert.Equal(t, "active", n.say(t, "is-active", "new.service"))
		}
		reset()
		refused(request{Config: "bad\n", When: "waiting"}, "but new.service does not run with it either")
		assert.NotEqual(t, "active", n.say(t, "is-active", "new.service"))
	})
}
