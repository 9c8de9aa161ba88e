package activate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk/internal/crashtest"
	"github.com/machineadm/machineadm/sdk/machine"
)

// environmentCase has desired variables and a file on a fake machine.
type environmentCase struct {
	name    string
	running bool
	old     []string
	// first are the desired variables of the process that is ended, then of the runs after it.
	first, then []string
	file        string // the new content of pathA, old when empty
	// want is the final environment.
	want []string
	bad  bool
}

func environmentCases() []environmentCase {
	theirs := []string{"B=1", "SECRET=2"}
	ours := []string{"B=1", "P=x", "SECRET=2", "Q=y", "MACHINEADM_ADDED=P,Q"}
	return []environmentCase{
		{name: "the first", running: true, first: []string{"P=x"}, want: []string{"P=x", "MACHINEADM_ADDED=P"}},
		{name: "beside others'", running: true, old: theirs, first: []string{"P=x"}, want: append(theirs[:2:2], "P=x", "MACHINEADM_ADDED=P")},
		{name: "with a file", running: true, old: theirs, first: []string{"P=x"}, file: "new", want: append(theirs[:2:2], "P=x", "MACHINEADM_ADDED=P")},
		{name: "changed", running: true, old: ours, first: []string{"P=z", "Q=y"}, want: []string{"B=1", "P=z", "SECRET=2", "Q=y", "MACHINEADM_ADDED=P,Q"}},
		{name: "removed", running: true, old: ours, want: theirs},
		{name: "the last one removed", running: true, old: []string{"P=x", "MACHINEADM_ADDED=P"}},
		{name: "was stopped", old: theirs, first: []string{"P=x"}, want: append(theirs[:2:2], "P=x", "MACHINEADM_ADDED=P")},
		{name: "ends with it", running: true, old: ours, first: []string{"P=die"}, want: ours, bad: true},
		{name: "hangs with it", running: true, old: theirs, first: []string{"P=hang"}, want: theirs, bad: true},
		{name: "hangs with the file", running: true, old: ours, first: []string{"P=z"}, file: "hang", want: ours, bad: true},
		{name: "was stopped, hangs", old: ours, first: []string{"P=hang"}, want: ours, bad: true},
		{name: "changed to good", running: true, old: theirs, first: []string{"P=hang"}, then: []string{"Q=y"}, want: append(theirs[:2:2], "Q=y", "MACHINEADM_ADDED=Q")},
		{name: "changed to bad", running: true, old: ours, first: []string{"P=z"}, then: []string{"P=die"}, want: ours, bad: true},
	}
}

// TestEnvironmentSurvivesCrashes ends a run before each of its operations, and the next one before each of its own.
func TestEnvironmentSurvivesCrashes(t *testing.T) {
	t.Parallel()
	for _, c := range environmentCases() {
		if c.then == nil {
			c.then = c.first
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c.check(t)
				crashtest.Everywhere(t, 2, func() crashtest.Subject {
					h := c.machine()
					return crashtest.Subject{
						First: func(p *crashtest.Point) (int, error) { return c.run(h, p, c.first) },
						Run:   func(p *crashtest.Point) (int, error) { return c.run(h, p, c.then) },
						State: h.state,
					}
				})
			})
		})
	}
}

func (c environmentCase) machine() *fakeMachine {
	h := newFakeMachine(false, map[string]string{pathA: "old"})
	h.environment = slices.Clone(c.old)
	if c.running {
		h.start()
	}
	return h
}

func (c environmentCase) run(h *fakeMachine, p *crashtest.Point, ask []string) (planned int, err error) {
	e := variables(ask...)
	h.variables = &e
	return h.run(p, specs(map[string]string{pathA: c.content()})...)
}

func (c environmentCase) content() string {
	if c.file != "" {
		return c.file
	}
	return "old"
}

// check requires that an uninterrupted run ends with the new environment in effect, or with the old one and an error.
func (c environmentCase) check(t *testing.T) {
	h, file, running := c.machine(), c.content(), true
	if c.bad {
		file, running = "old", c.running
	}
	_, err := c.run(h, noCrash(), c.then)
	require.Equal(t, c.bad, err != nil, err)
	require.NotContains(t, fmt.Sprint(err), "SECRET")
	require.Equal(t, c.want, h.environment)
	require.Equal(t, map[string]string{pathA: file}, h.contents())
	require.Empty(t, h.store)
	require.Zero(t, h.daemon.reloads)
	require.Equal(t, running, h.daemon.active)
	if running {
		require.Equal(t, file, h.daemon.loaded[pathA])
		require.Equal(t, strings.Join(c.want, "\n"), h.daemon.loaded[environmentPath("d.service")])
	}
}

// TestEnvironmentThatCannotBeWritten: nothing stays changed, also not the file that was swapped before it.
func TestEnvironmentThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := environmentCase{running: true, old: []string{"B=1"}, file: "new"}
		h := c.machine()
		h.full = environmentPath("d.service")
		_, err := c.run(h, noCrash(), []string{"P=x"})
		wantError(t, err, pluginv1.CodePrecondition, "no space left", "the old configuration was restored", "was not restarted")
		if h.contents()[pathA] != "old" || !slices.Equal(h.environment, c.old) || h.daemon.starts != 1 || len(h.store) != 0 {
			t.Errorf("disk %v, environment %q, %d starts, %d records; want nothing changed", h.contents(), h.environment, h.daemon.starts, len(h.store))
		}
	})
}

// TestEnvironmentIsNoCandidate: the checker receives files, but not the environment.
func TestEnvironmentIsNoCandidate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := environmentCase{running: true}
		h := c.machine()
		e := variables("P=x")
		h.variables = &e
		w := h.process(noCrash(), specs(map[string]string{pathA: "new"})...)
		shown := map[string]string{}
		check := w.Check
		w.Check = func(ctx context.Context, m machine.Machine, candidates map[string]string) error {
			shown = candidates
			if len(h.environment) > 0 {
				t.Errorf("the checker finds the environment changed: %q", h.environment)
			}
			return check(ctx, m, candidates)
		}
		if err := w.do(t.Context(), discard{}); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(shown, map[string]string{pathA: candidate(pathA)}) {
			t.Errorf("the checker was shown %v", shown)
		}
	})
}

// TestEnvironmentOfAnEarlierPlugin: a version without variables rolls back those in the record of an earlier version.
func TestEnvironmentOfAnEarlierPlugin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		found := false
		for n := 0; ; n++ {
			c := environmentCase{running: true, old: []string{"B=1"}}
			h := c.machine()
			p := crashtest.At(n)
			if !p.Run(func() { _, _ = c.run(h, p, []string{"P=x"}) }) { // the next run has its outcome
				break
			}
			found = found || len(h.environment) > 1
			h.variables = nil
			_, err := h.run(noCrash(), specs(map[string]string{pathA: "old"})...)
			if len(h.store) > 0 || err != nil || len(h.environment) > 1 {
				t.Errorf("ended before operation %d: %q, %d records, %v", n, h.environment, len(h.store), err)
			}
		}
		if !found {
			t.Error("the process never ended after the swap")
		}
	})
}
