package activate

import (
	"maps"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk/internal/fault"
	"github.com/machineadm/machineadm/sdk/internal/files"
	"github.com/machineadm/machineadm/sdk/machine"
)

// TestActivationInsteadOfAnother: the replaced daemons are stopped before the swap, and the unit is enabled last.
func TestActivationInsteadOfAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newFakeMachine(true, map[string]string{pathA: "old a"})
		h.addOther()
		want := specs(map[string]string{pathA: "new a"})
		todo, err := h.process(noCrash(), want...).plan(t.Context())
		require.NoError(t, err)
		require.NotNil(t, todo.Do)
		assert.Equal(t, "change the configuration of d.service (1 file) and restart it; stop e.service; "+
			"keep e.service from starting; keep idle.service from starting; enable d.service", todo.Summary)
		assert.Contains(t, todo.Diff, "+++ b"+offPath(otherUnit)+"\n")
		swapped := &hook{on: "swapping", do: func() { h.calls = append(h.calls, "swap") }}
		require.NoError(t, todo.Do(t.Context(), swapped))
		assert.Equal(t, []string{"stop e.service", "swap", "daemon-reload", "restart d.service", "enable d.service"}, h.calls)
		assert.Equal(t, "# machineadm keeps e.service from starting: d.service runs in its place.\n"+
			"# To undo this, remove this file, then run: systemctl daemon-reload\n[Unit]\nConditionPathExists=!/\n"+
			"[Service]\nExecStart=\n", h.contents()[offPath(otherUnit)])
		planned, err := h.run(noCrash(), want...)
		require.NoError(t, err)
		assert.Zero(t, planned)

		h.others[otherUnit], h.calls = machine.ServiceState{ID: otherUnit, Exists: true, Masked: true, Active: "active"}, nil
		_, err = h.run(noCrash(), want...)
		require.NoError(t, err)
		assert.Equal(t, []string{"stop e.service", "daemon-reload"}, h.calls, "the mask stays, and nothing is restarted")

		h.others[otherUnit], h.calls = machine.ServiceState{ID: otherUnit, Exists: true, Active: "active"}, nil
		delete(h.disk, offPath(otherUnit))
		todo, err = h.process(noCrash(), want...).plan(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "stop e.service; keep e.service from starting", todo.Summary)
		_, err = h.run(noCrash(), want...)
		require.NoError(t, err)
		assert.Equal(t, []string{"stop e.service", "daemon-reload"}, h.calls, "a drop-in of another unit requires no restart")
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
		"no longer healthy": {func(h *fakeMachine) {
			h.disk[pathA] = files.State{Exists: true, Content: []byte("die"), Mode: 0o644}
		}, "d.service does not run with it either (it ended (failed)), and e.service runs again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newFakeMachine(true, map[string]string{pathA: "old a"})
				h.addOther()
				c.change(h)
				_, err := h.run(noCrash(), specs(map[string]string{pathA: "die now"})...)
				wantError(t, err, pluginv1.CodePrecondition, c.text)
				assert.Empty(t, h.store)
				assert.False(t, h.enabled)
				assert.Len(t, h.disk, 1, "the drop-ins are removed")
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
		known, _ := fault.Known(err)
		assert.Contains(t, known.Hint, "systemctl unmask d.service")
		assert.Equal(t, 2, h.daemon.starts)
		assert.Equal(t, map[string]string{pathA: "old a"}, h.contents())
	})
}

// TestActivationTakesOver: the next provider removes the drop-in of its own unit, under any of its names.
func TestActivationTakesOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, runs := range []bool{false, true} {
			h := newFakeMachine(runs, map[string]string{pathA: "a", offPath("d.service"): "x", offPath("alias-of-d.service"): "x"})
			h.off = maps.Clone(h.disk)
			todo, err := h.process(noCrash(), specs(map[string]string{pathA: "a"})...).plan(t.Context())
			require.NoError(t, err)
			assert.Contains(t, todo.Summary, "let alias-of-d.service start again; let d.service start again")
			require.NoError(t, todo.Do(t.Context(), discard{}))
			assert.Equal(t, map[string]string{pathA: "a"}, h.contents())
			assert.Equal(t, 1, h.daemon.starts, "a daemon that runs is not restarted")
			assert.Equal(t, "daemon-reload", h.calls[0])
			planned, err := h.run(noCrash(), specs(map[string]string{pathA: "a"})...)
			require.NoError(t, err)
			assert.Zero(t, planned)
		}
	})
}

// TestActivationTakesOverMeanwhile: a drop-in that another activation wrote after a crash is removed, and rolled back.
func TestActivationTakesOverMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, content := range []string{"new", "die"} {
			for n := 0; ; n++ {
				h := newFakeMachine(true, map[string]string{pathA: "old"})
				if !h.endsAt(n, specs(map[string]string{pathA: content})...) {
					break
				}
				resumed := len(h.store) > 0
				h.disk[offPath("d.service")] = files.State{Exists: true, Content: []byte("x"), Mode: 0o644}
				h.daemon.reloads = 0
				_, err := h.run(noCrash(), specs(map[string]string{pathA: content})...)
				want := map[string]string{pathA: "new"}
				if content == "die" {
					want = map[string]string{pathA: "old", offPath("d.service"): "x"}
				}
				assert.Equal(t, want, h.contents(), "ended before operation %d (%v): %v", n, resumed, err)
				assert.NotZero(t, h.daemon.reloads, "ended before operation %d (%v): %v", n, resumed, err)
			}
		}
	})
}
