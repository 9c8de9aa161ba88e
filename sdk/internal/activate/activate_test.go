package activate

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk/internal/crashtest"
	"github.com/machineadm/machineadm/sdk/internal/fault"
	"github.com/machineadm/machineadm/sdk/internal/files"
	"github.com/machineadm/machineadm/sdk/internal/units"
	"github.com/machineadm/machineadm/sdk/machine"
)

// noCrash is a process that does not end early.
func noCrash() *crashtest.Point { return crashtest.Never() }

func wantError(t *testing.T, err error, code pluginv1.Code, texts ...string) {
	t.Helper()
	known, ok := fault.Known(err)
	if !ok || known.Code != code {
		t.Fatalf("error %v, want %v", err, code)
	}
	for _, text := range texts {
		if !strings.Contains(known.Message, text) {
			t.Errorf("message %q lacks %q", known.Message, text)
		}
	}
}

func TestActivationRefusedByTheChecker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer error
		code   pluginv1.Code
		text   string
		detail string
	}{
		"program": {
			&machine.CommandError{Name: "dd", ExitCode: 1, Stderr: "line 7: what?"}, pluginv1.CodePrecondition,
			"the check of the new configuration of d.service failed, nothing was changed: dd: exit code 1", "line 7: what?",
		},
		"plain":    {errors.New("syntax error"), pluginv1.CodePrecondition, "nothing was changed: syntax error", ""},
		"detailed": {fault.WithDetail(errors.New("it said no"), "raw"), pluginv1.CodePrecondition, "it said no", "raw"},
		"contract": {&pluginv1.Error{Code: pluginv1.CodeInvalidConfig, Message: "the document is not valid"}, pluginv1.CodeInvalidConfig, "the document is not valid", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := map[string]string{pathA: "old a"}
			h := newFakeMachine(true, old)
			h.refuse = func(content string) error {
				if content != "new a" {
					t.Errorf("the checker was shown %q", content)
				}
				return c.answer
			}
			_, err := h.run(noCrash(), specs(map[string]string{pathA: "new a"})...)
			wantError(t, err, c.code, c.text)
			if got := fault.Output(err); got != c.detail {
				t.Errorf("detail %q, want %q", got, c.detail)
			}
			if got := h.contents(); !maps.Equal(got, old) || h.daemon.starts != 1 || len(h.store) != 0 {
				t.Errorf("disk %v, %d starts, %d records; want nothing changed", got, h.daemon.starts, len(h.store))
			}
		})
	}
}

func TestActivationThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		old := map[string]string{pathA: "old a", pathB: "old b"}
		h := newFakeMachine(true, old)
		h.full = pathB
		_, err := h.run(noCrash(), specs(map[string]string{pathA: "new a", pathB: "new b"})...)
		wantError(t, err, pluginv1.CodePrecondition, "no space left", "the old configuration was restored", "was not restarted")
		if got := h.contents(); !maps.Equal(got, old) || h.daemon.starts != 1 || len(h.store) != 0 {
			t.Errorf("disk %v, %d starts, %d records; want nothing changed", got, h.daemon.starts, len(h.store))
		}
	})
}

// TestActivationThatCannotBeRolledBack ends between two configurations, and the next run continues the rollback.
func TestActivationThatCannotBeRolledBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		old := map[string]string{pathA: "old a", pathB: "old b"}
		dies := specs(map[string]string{pathA: "new a", pathB: "die"})
		h := newFakeMachine(true, old)
		h.refuse = func(string) error { return nil }
		w := h.process(noCrash(), dies...)
		todo, err := w.plan(t.Context())
		if err != nil || todo.Do == nil {
			t.Fatalf("%+v, %v", todo, err)
		}
		err = todo.Do(t.Context(), &hook{on: "rolling back", do: func() { h.full = pathB }})
		wantError(t, err, pluginv1.CodePrecondition, "could not be restored", "no space left", "it ended (failed)", "the next run tries again")
		if len(h.store) != 1 {
			t.Errorf("%d records are left, want 1", len(h.store))
		}
		h.full = ""
		_, err = h.run(noCrash(), dies...)
		wantError(t, err, pluginv1.CodePrecondition, "the old configuration was restored, and d.service runs with it")
		if got := h.contents(); !maps.Equal(got, old) || !maps.Equal(h.daemon.loaded, old) || len(h.store) != 0 {
			t.Errorf("disk %v, daemon %v, %d records; want the old configuration", got, h.daemon.loaded, len(h.store))
		}
	})
}

// hook is a Progress that calls a function when a text is reported.
type hook struct {
	Progress
	on string
	do func()
}

func (h *hook) Report(message string) {
	if strings.Contains(message, h.on) {
		h.do()
	}
}

// TestRollbackRepeatsARefusedRestart: after repeated crashes systemd refuses to start a unit for a while.
func TestRollbackRepeatsARefusedRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newFakeMachine(true, map[string]string{pathA: "old a"})
		w := h.process(noCrash(), specs(map[string]string{pathA: "die"})...)
		err := w.do(t.Context(), &hook{on: "rolling back", do: func() { h.daemon.busy = 3 }})
		wantError(t, err, pluginv1.CodePrecondition, "the old configuration was restored, and d.service runs with it")
		if !h.daemon.active || h.daemon.busy != 0 {
			t.Errorf("the daemon runs: %v, refusals left: %d", h.daemon.active, h.daemon.busy)
		}
	})
}

func TestActivationWithABrokenOldConfiguration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newFakeMachine(true, map[string]string{pathA: "old a"})
		h.disk[pathA] = files.State{Exists: true, Content: []byte("die old"), Mode: 0o644} // not yet read by the daemon
		_, err := h.run(noCrash(), specs(map[string]string{pathA: "hang"})...)
		wantError(t, err, pluginv1.CodePrecondition,
			"not healthy within 1s: it hangs", "the old configuration was restored, but d.service does not run with it either (it ended (failed))")
		require.Contains(t, pluginv1.AsError(err).Hint, "look for the cause elsewhere than in the new configuration")
		if got := h.contents()[pathA]; got != "die old" || len(h.store) != 0 {
			t.Errorf("disk %q, %d records", got, len(h.store))
		}
	})
}

// TestActivationInterrupted: when the context ends, nothing is rolled back. The next run finishes the activation.
func TestActivationInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newFakeMachine(true, map[string]string{pathA: "old a"})
		want := specs(map[string]string{pathA: "hang"})
		ctx, cancel := context.WithCancel(t.Context())
		err := h.process(noCrash(), want...).do(ctx, &hook{on: "waiting", do: cancel})
		if !errors.Is(err, context.Canceled) || len(h.store) != 1 || h.contents()[pathA] != "hang" {
			t.Fatalf("error %v, %d records, disk %v; want an activation that is left unfinished", err, len(h.store), h.contents())
		}
		planned, err := h.run(noCrash(), want...)
		wantError(t, err, pluginv1.CodePrecondition, "the old configuration was restored")
		if planned != 1 || h.contents()[pathA] != "old a" {
			t.Errorf("%d changes were planned, disk %v", planned, h.contents())
		}
	})
}

// TestActivationRequiresALastingDaemon: one that answers once and ends is not healthy.
func TestActivationRequiresALastingDaemon(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(*fakeMachine){
		"dies":      func(h *fakeMachine) { h.daemon.active, h.daemon.failed = false, true },
		"restarted": func(h *fakeMachine) { h.daemon.starts++ },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newFakeMachine(true, map[string]string{pathA: "old a"})
				w := h.process(noCrash(), specs(map[string]string{pathA: "new a"})...)
				w.Healthy = func(context.Context, machine.Machine, Progress) error {
					if string(h.disk[pathA].Content) == "new a" {
						next(h)
					}
					return nil
				}
				wantError(t, w.do(t.Context(), discard{}), pluginv1.CodePrecondition, "the old configuration was restored")
			})
		})
	}
}

func TestActivationReloadsUnitFiles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const dropIn = "/etc/systemd/system/d.service.d/10-x.conf"
		h := newFakeMachine(true, map[string]string{})
		if _, err := h.run(noCrash(), fileWith(dropIn, "[Service]\n")); err != nil {
			t.Fatal(err)
		}
		if h.daemon.reloads != 1 || h.daemon.starts != 2 {
			t.Errorf("%d reloads, %d starts; want 1 and 2", h.daemon.reloads, h.daemon.starts)
		}
	})
}

func TestActivationPlan(t *testing.T) {
	t.Parallel()
	h := newFakeMachine(true, map[string]string{pathA: "same\n", pathB: "old\n"})
	planned, err := h.process(noCrash(), specs(map[string]string{pathA: "same\n", pathB: "new\n"})...).plan(t.Context())
	require.NoError(t, err)
	const diff = "--- a/etc/d/b.conf\n+++ b/etc/d/b.conf\n@@ -1 +1 @@\n-old\n+new\n"
	if planned.Do == nil || planned.Files != nil || planned.Diff != diff ||
		planned.Summary != "change the configuration of d.service (1 file) and restart it" {
		t.Errorf("planned %+v", planned)
	}
}

// TestActivationDamagedRecord: an unreadable record is an error that does not quote it.
func TestActivationDamagedRecord(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"not JSON": `{"old": [canary`, "another version": `{"version": 99, "unit": "d.service", "desired": "canary"}`,
		"another unit": `{"version": 1, "unit": "canary"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFakeMachine(true, map[string]string{pathA: "old a"})
			h.store[units.RecordName("activation", "d.service")] = []byte(data)
			_, err := h.run(noCrash(), specs(map[string]string{pathA: "old a"})...)
			if err == nil || strings.Contains(err.Error(), "canary") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestActivationOfADaemonThatIsDown: the files match, and the daemon is started.
func TestActivationOfADaemonThatIsDown(t *testing.T) {
	t.Parallel()
	for content, message := range map[string]string{
		"as wanted": "", "die": "is not healthy with its configuration: it ended (failed)",
	} {
		t.Run(content, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				files := map[string]string{pathA: content}
				h := newFakeMachine(false, files)
				planned, err := h.run(noCrash(), specs(files)...)
				if planned != 1 || h.daemon.starts != 1 {
					t.Errorf("%d changes were planned, %d starts", planned, h.daemon.starts)
				}
				if message == "" {
					if err != nil || !h.daemon.active {
						t.Errorf("the daemon runs: %v (%v)", h.daemon.active, err)
					}
					return
				}
				wantError(t, err, pluginv1.CodePrecondition, message)
			})
		})
	}
}

// TestActivationOfAUnitThatIsMaskedMeanwhile: the daemon was never restarted, so it runs with its old configuration.
func TestActivationOfAUnitThatIsMaskedMeanwhile(t *testing.T) {
	t.Parallel()
	const dropIn = "/etc/systemd/system/d.service.d/10-x.conf"
	const masked = "d.service is masked: it cannot be started"
	for name, c := range map[string]struct {
		on    string
		stop  bool
		texts []string
	}{
		"before the restart":    {"restarting", false, []string{masked, "the old configuration was restored, and d.service was not restarted"}},
		"and stopped before it": {"restarting", true, []string{masked, "but d.service does not run with it either (" + masked + ")"}},
		"after the restart":     {"waiting", false, nil},
		"stopped after it":      {"waiting", true, []string{masked, "but d.service does not run with it either (" + masked + ")"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				old := map[string]string{pathA: "old a", dropIn: "old"}
				h := newFakeMachine(true, old)
				w := h.process(noCrash(), append(specs(map[string]string{pathA: "new a"}),
					fileWith(dropIn, "new"))...)
				began := time.Now()
				err := w.do(t.Context(), &hook{on: c.on, do: func() {
					h.masked, h.daemon.active = true, !c.stop
				}})
				if c.texts == nil { // it runs; that it cannot be started again is no failure
					require.NoError(t, err)
					return
				}
				wantError(t, err, pluginv1.CodePrecondition, c.texts...)
				known, _ := fault.Known(err)
				assert.Contains(t, known.Hint, "systemctl unmask d.service")
				assert.Equal(t, old, h.contents())
				assert.Empty(t, h.store)
				assert.Less(t, time.Since(began), time.Second, "nothing unmasks it while it waits")
				if !c.stop {
					assert.Equal(t, 1, h.daemon.starts)
					assert.Equal(t, 2, h.daemon.reloads, "systemd reads the new drop-in, then the old one again")
				}
			})
		})
	}
}

// TestActivationCompanions: companions restart nothing, and are rolled back with the other files.
func TestActivationCompanions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		old := map[string]string{pathA: "old a", pathC: "old c"}
		h := newFakeMachine(true, old)
		_, err := h.run(noCrash(), specs(map[string]string{pathA: "die", pathC: "new c"})...)
		wantError(t, err, pluginv1.CodePrecondition, "the old configuration was restored, and d.service runs with it")
		assert.Equal(t, old, h.contents())
		starts := h.daemon.starts
		want := specs(map[string]string{pathA: "old a", pathC: "new c"})
		planned, err := h.process(noCrash(), want...).plan(t.Context())
		require.NoError(t, err)
		require.Len(t, planned.Files, 1)
		assert.Equal(t, "file:"+pathC, planned.Files[0].ID)
		assert.Nil(t, planned.Do)
		_, err = h.run(noCrash(), want...)
		require.NoError(t, err)
		assert.Equal(t, "new c", h.contents()[pathC])
		assert.Equal(t, starts, h.daemon.starts)
	})
}

func TestActivationWithoutALink(t *testing.T) {
	t.Parallel()
	h := newFakeMachine(true, map[string]string{pathA: "old a"})
	h.disk[pathA] = files.State{Exists: true, Content: []byte("x"), Mode: fs.ModeSymlink | 0o777}
	w := h.process(noCrash(), specs(map[string]string{pathA: absent})...)
	_, err := w.plan(t.Context())
	wantError(t, err, pluginv1.CodePrecondition, "is a link where no file may be")
}
