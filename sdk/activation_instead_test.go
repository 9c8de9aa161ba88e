package sdk

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk/machine"
)

// TestActivationInsteadOfAnother: the replaced daemons are stopped before the swap, and the unit is enabled last.
func TestActivationInsteadOfAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newFakeMachine(true, map[string]string{pathA: "old a"})
		h.addOther()
		want := specs(map[string]string{pathA: "new a"})
		changes, err := h.process(noCrash(), want...).plan(t.Context())
		require.NoError(t, err)
		require.Len(t, changes, 1)
		assert.Equal(t, "change the configuration of d.service (1 file) and restart it; stop and disable e.service; enable d.service",
			changes[0].Summary)
		swapped := &hook{on: "swapping", do: func() { h.calls = append(h.calls, "swap") }}
		require.NoError(t, changes[0].Do(t.Context(), swapped))
		assert.Equal(t, []string{"stop e.service", "disable e.service", "swap", "restart d.service", "enable d.service"}, h.calls)
		_, planned, err := h.run(noCrash(), want...)
		require.NoError(t, err)
		assert.Zero(t, planned)

		h.others[otherUnit], h.calls = machine.ServiceState{ID: otherUnit, Exists: true, Masked: true, Active: "active"}, nil
		_, _, err = h.run(noCrash(), want...)
		require.NoError(t, err)
		assert.Equal(t, []string{"stop e.service"}, h.calls, "the mask stays, and nothing is restarted")
	})
}

// TestActivationInsteadOfAnotherRolledBack: replaced daemons get their former state, as far as possible.
func TestActivationInsteadOfAnotherRolledBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*fakeMachine)
		text   string
	}{
		"healthy": {func(*fakeMachine) {}, "and d.service runs with it, and e.service runs again"},
		"masked while it ran": {func(h *fakeMachine) {
			h.others[otherUnit] = machine.ServiceState{ID: otherUnit, Exists: true, Masked: true, Active: "active"}
		}, "but e.service could not be started again (e.service is masked: it cannot be started)"},
		"wanted by others": {func(h *fakeMachine) {
			h.others[otherUnit] = machine.ServiceState{ID: otherUnit, Exists: true, StartsAtBoot: true, FileState: "static", Active: "active"}
		}, "e.service starts at boot though it is disabled: another unit wants it"},
		"no longer healthy": {func(h *fakeMachine) {
			h.disk[pathA] = version{Exists: true, Content: []byte("die"), Mode: 0o644}
		}, "d.service does not run with it either (it ended (failed)), and e.service runs again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newFakeMachine(true, map[string]string{pathA: "old a"})
				h.addOther()
				c.change(h)
				_, _, err := h.run(noCrash(), specs(map[string]string{pathA: "die now"})...)
				wantError(t, err, pluginv1.CodePrecondition, c.text)
				assert.Empty(t, h.store)
				assert.False(t, h.enabled)
			})
		})
	}
}

// TestActivationOfAUnitThatIsMaskedAfterItsRestart: it can neither be enabled nor restarted with its old configuration.
func TestActivationOfAUnitThatIsMaskedAfterItsRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newFakeMachine(true, map[string]string{pathA: "old a"})
		h.addOther()
		err := h.process(noCrash(), specs(map[string]string{pathA: "new a"})...).do(t.Context(),
			&hook{on: "enabling", do: func() { h.masked = true }})
		wantError(t, err, pluginv1.CodePrecondition, "d.service could not be restarted with it and still runs as it was",
			"d.service is masked: it cannot be started", "and e.service runs again")
		known, _ := asContract(err)
		assert.Contains(t, known.Hint, "systemctl unmask d.service")
		assert.Equal(t, 2, h.daemon.starts)
		assert.Equal(t, map[string]string{pathA: "old a"}, h.contents())
	})
}
