package sdk

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
	"github.com/machineadm/machineadm/sdk/machine"
)

// forever is a process that nobody ends.
func forever() *fuse { return &fuse{left: -1} }

func wantError(t *testing.T, err error, code pluginv1.Code, texts ...string) {
	t.Helper()
	known, ok := asContract(err)
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
		"detailed": {WithDetail(errors.New("it said no"), "raw"), pluginv1.CodePrecondition, "it said no", "raw"},
		"contract": {InvalidConfig(Violation{Field: "spec.x"}), pluginv1.CodeInvalidConfig, "the document is not valid", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := map[string]string{pathA: "old a"}
			h := newHouse(true, old)
			h.refuse = func(content string) error {
				if content != "new a" {
					t.Errorf("the checker was shown %q", content)
				}
				return c.answer
			}
			_, _, err := h.run(forever(), wish(map[string]string{pathA: "new a"})...)
			wantError(t, err, c.code, c.text)
			if got := outputOf(err); got != c.detail {
				t.Errorf("detail %q, want %q", got, c.detail)
			}
			if got := h.on(); !maps.Equal(got, old) || h.daemon.starts != 1 || len(h.memory) != 0 {
				t.Errorf("disk %v, %d starts, %d records; want nothing changed", got, h.daemon.starts, len(h.memory))
			}
		})
	}
}

func TestActivationThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		old := map[string]string{pathA: "old a", pathB: "old b"}
		h := newHouse(true, old)
		h.full = pathB
		_, _, err := h.run(forever(), wish(map[string]string{pathA: "new a", pathB: "new b"})...)
		wantError(t, err, pluginv1.CodePrecondition, "no space left", "the old configuration is back", "was not restarted")
		if got := h.on(); !maps.Equal(got, old) || h.daemon.starts != 1 || len(h.memory) != 0 {
			t.Errorf("disk %v, %d starts, %d records; want nothing changed", got, h.daemon.starts, len(h.memory))
		}
	})
}

// TestActivationThatCannotBePutBack ends between two configurations: it says so, and the next run gets out of it.
func TestActivationThatCannotBePutBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		old := map[string]string{pathA: "old a", pathB: "old b"}
		dies := wish(map[string]string{pathA: "new a", pathB: "die"})
		h := newHouse(true, old)
		h.refuse = func(string) error { return nil }
		w := h.process(forever(), dies...)
		changes, err := w.plan(t.Context())
		if err != nil || len(changes) != 1 {
			t.Fatalf("%d changes, %v", len(changes), err)
		}
		err = changes[0].Do(t.Context(), &hook{on: "putting the old", do: func() { h.full = pathB }})
		wantError(t, err, pluginv1.CodePrecondition, "could not be put back", "no space left", "it ended (failed)", "the next run tries again")
		if len(h.memory) != 1 {
			t.Errorf("%d records are left, want 1", len(h.memory))
		}
		h.full = ""
		_, _, err = h.run(forever(), dies...)
		wantError(t, err, pluginv1.CodePrecondition, "the old configuration is back, and d.service runs with it")
		if got := h.on(); !maps.Equal(got, old) || !maps.Equal(h.daemon.loaded, old) || len(h.memory) != 0 {
			t.Errorf("disk %v, daemon %v, %d records; want the old configuration", got, h.daemon.loaded, len(h.memory))
		}
	})
}

// hook is a Progress that does something when it hears a text.
type hook struct {
	silence
	on string
	do func()
}

func (h *hook) Report(message string) {
	if strings.Contains(message, h.on) {
		h.do()
	}
}

// TestActivationRevivesARefusedDaemon: after a crash loop systemd refuses to start a unit for a while.
func TestActivationRevivesARefusedDaemon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(true, map[string]string{pathA: "old a"})
		w := h.process(forever(), wish(map[string]string{pathA: "die"})...)
		err := w.do(t.Context(), &hook{on: "putting the old", do: func() { h.daemon.busy = 3 }})
		wantError(t, err, pluginv1.CodePrecondition, "the old configuration is back, and d.service runs with it")
		if !h.daemon.active || h.daemon.busy != 0 {
			t.Errorf("the daemon runs: %v, refusals left: %d", h.daemon.active, h.daemon.busy)
		}
	})
}

func TestActivationWithoutALivingOldConfiguration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(true, map[string]string{pathA: "old a"})
		h.disk[pathA] = version{Exists: true, Content: []byte("die old"), Mode: 0o644} // not yet read by the daemon
		_, _, err := h.run(forever(), wish(map[string]string{pathA: "hang"})...)
		wantError(t, err, pluginv1.CodePrecondition,
			"not healthy within 1s: it hangs", "the old configuration is back, but d.service does not run with it either (it ended (failed))")
		if got := h.on()[pathA]; got != "die old" || len(h.memory) != 0 {
			t.Errorf("disk %q, %d records", got, len(h.memory))
		}
	})
}

// TestActivationInterrupted: when the context ends there is no time to put anything back. The next run finishes it.
func TestActivationInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(true, map[string]string{pathA: "old a"})
		want := wish(map[string]string{pathA: "hang"})
		ctx, cancel := context.WithCancel(t.Context())
		err := h.process(forever(), want...).do(ctx, &hook{on: "waiting", do: cancel})
		if !errors.Is(err, context.Canceled) || len(h.memory) != 1 || h.on()[pathA] != "hang" {
			t.Fatalf("error %v, %d records, disk %v; want an activation that is left unfinished", err, len(h.memory), h.on())
		}
		_, planned, err := h.run(forever(), want...)
		wantError(t, err, pluginv1.CodePrecondition, "the old configuration is back")
		if planned != 1 || h.on()[pathA] != "old a" {
			t.Errorf("%d changes were planned, disk %v", planned, h.on())
		}
	})
}

// TestActivationWantsADaemonThatStays: one that answers once and dies is not healthy.
func TestActivationWantsADaemonThatStays(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(*house){
		"dies":      func(h *house) { h.daemon.active, h.daemon.failed = false, true },
		"restarted": func(h *house) { h.daemon.starts++ },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(true, map[string]string{pathA: "old a"})
				w := h.process(forever(), wish(map[string]string{pathA: "new a"})...)
				w.Healthy = func(context.Context, Machine, Progress) error {
					if string(h.disk[pathA].Content) == "new a" {
						next(h)
					}
					return nil
				}
				wantError(t, w.do(t.Context(), silence{}), pluginv1.CodePrecondition, "the old configuration is back")
			})
		})
	}
}

func TestActivationHasUnitFilesRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const dropIn = "/etc/systemd/system/d.service.d/10-x.conf"
		h := newHouse(true, map[string]string{})
		if _, _, err := h.run(forever(), FileSpec{Path: dropIn, Content: []byte("[Service]\n"), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if h.daemon.reloads != 1 || h.daemon.starts != 2 {
			t.Errorf("%d reloads, %d starts; want 1 and 2", h.daemon.reloads, h.daemon.starts)
		}
	})
}

func TestActivationPlan(t *testing.T) {
	t.Parallel()
	h := newHouse(true, map[string]string{pathA: "same\n", pathB: "old\n"})
	changes, err := h.process(forever(), wish(map[string]string{pathA: "same\n", pathB: "new\n"})...).plan(t.Context())
	if err != nil || len(changes) != 1 {
		t.Fatalf("%d changes, %v", len(changes), err)
	}
	c := changes[0]
	const diff = "--- a/etc/d/b.conf\n+++ b/etc/d/b.conf\n@@ -1 +1 @@\n-old\n+new\n"
	if c.ID != "activate:d.service" || c.Diff != diff || !c.NeedsLive ||
		c.Summary != "change the configuration of d.service (1 file) and restart it" {
		t.Errorf("change %+v", c)
	}
}

// TestActivationDamagedRecord: what cannot be read is not forgotten silently, and not quoted.
func TestActivationDamagedRecord(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"no JSON": `{"old": [canary`, "another version": `{"version": 99, "unit": "d.service", "wish": "canary"}`,
		"another unit": `{"version": 1, "unit": "canary"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(true, map[string]string{pathA: "old a"})
			h.memory[memoryName("activation", "d.service")] = []byte(data)
			_, _, err := h.run(forever(), wish(map[string]string{pathA: "old a"})...)
			if err == nil || strings.Contains(err.Error(), "canary") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestActivationOfADaemonThatIsDown: with its files in place, a daemon that does not run is not converged.
func TestActivationOfADaemonThatIsDown(t *testing.T) {
	t.Parallel()
	for content, message := range map[string]string{
		"as wanted": "", "die": "does not run well with its configuration: it ended (failed)",
	} {
		t.Run(content, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				files := map[string]string{pathA: content}
				h := newHouse(false, files)
				_, planned, err := h.run(forever(), wish(files)...)
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
		"before the restart":    {"restarting", false, []string{masked, "the old configuration is back, and d.service was not restarted"}},
		"and stopped before it": {"restarting", true, []string{masked, "but d.service does not run with it either (" + masked + ")"}},
		"after the restart":     {"waiting", false, nil},
		"stopped after it":      {"waiting", true, []string{masked, "but d.service does not run with it either (" + masked + ")"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				old := map[string]string{pathA: "old a", dropIn: "old"}
				h := newHouse(true, old)
				w := h.process(forever(), append(wish(map[string]string{pathA: "new a"}),
					FileSpec{Path: dropIn, Content: []byte("new"), Mode: 0o644})...)
				began := time.Now()
				err := w.do(t.Context(), &hook{on: c.on, do: func() {
					h.masked, h.daemon.active = true, !c.stop
				}})
				if c.texts == nil { // it runs, and that it cannot be started again is not this activation's business
					require.NoError(t, err)
					return
				}
				wantError(t, err, pluginv1.CodePrecondition, c.texts...)
				known, _ := asContract(err)
				assert.Contains(t, known.Hint, "systemctl unmask d.service")
				assert.Equal(t, old, h.on())
				assert.Empty(t, h.memory)
				assert.Less(t, time.Since(began), time.Second, "nothing unmasks it while it waits")
				if !c.stop {
					assert.Equal(t, 1, h.daemon.starts)
					assert.Equal(t, 2, h.daemon.reloads, "systemd reads the new drop-in, then the old one again")
				}
			})
		})
	}
}

// TestActivationCompanions: they restart nothing, and are rolled back with the rest.
func TestActivationCompanions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		old := map[string]string{pathA: "old a", pathC: "old c"}
		h := newHouse(true, old)
		_, _, err := h.run(forever(), wish(map[string]string{pathA: "die", pathC: "new c"})...)
		wantError(t, err, pluginv1.CodePrecondition, "the old configuration is back, and d.service runs with it")
		assert.Equal(t, old, h.on())
		starts := h.daemon.starts
		want := wish(map[string]string{pathA: "old a", pathC: "new c"})
		changes, err := h.process(forever(), want...).plan(t.Context())
		require.NoError(t, err)
		require.Len(t, changes, 1)
		assert.Equal(t, "file:"+pathC, changes[0].ID)
		_, _, err = h.run(forever(), want...)
		require.NoError(t, err)
		assert.Equal(t, "new c", h.on()[pathC])
		assert.Equal(t, starts, h.daemon.starts)
	})
}

func TestActivationWithoutALink(t *testing.T) {
	t.Parallel()
	h := newHouse(true, map[string]string{pathA: "old a"})
	h.disk[pathA] = version{Exists: true, Content: []byte("x"), Mode: fs.ModeSymlink | 0o777}
	w := h.process(forever(), wish(map[string]string{pathA: absent})...)
	w.files = linked{w.files}
	_, err := w.plan(t.Context())
	wantError(t, err, pluginv1.CodePrecondition, "is a link where no file shall be")
}

// linked is a file system whose files are the ends of links.
type linked struct{ files }

func (l linked) Stat(name string) (machine.Info, error) {
	info, err := l.files.Stat(name)
	info.Mode = info.Mode.Perm()
	return info, err
}
