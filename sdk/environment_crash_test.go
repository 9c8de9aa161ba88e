package sdk

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// environmentCase has desired variables and a file on a fake machine.
type environmentCase struct {
	name    string
	running bool
	old     []string
	// first are the desired variables of the process that is ended, then those of the runs after it.
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

// TestEnvironmentSurvivesCrashes ends a process before each of its operations, and the next one before each of its own. The
// third run must reach a consistent state.
func TestEnvironmentSurvivesCrashes(t *testing.T) {
	t.Parallel()
	for _, c := range environmentCases() {
		if c.then == nil {
			c.then = c.first
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, c.everywhere)
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

func (c environmentCase) run(h *fakeMachine, f *crashPoint, ask []string) (ended bool, planned int, err error) {
	e := variables(ask...)
	h.variables = &e
	return h.run(f, specs(map[string]string{pathA: c.content()})...)
}

func (c environmentCase) content() string {
	if c.file != "" {
		return c.file
	}
	return "old"
}

func (c environmentCase) everywhere(t *testing.T) {
	runs := 0
	for n := 0; ; n++ {
		first := c.machine()
		ended, _, _ := c.run(first, &crashPoint{left: n}, c.first)
		if !ended {
			break
		}
		for k := 0; ; k++ {
			h := first.clone()
			ended, _, err := c.run(h, &crashPoint{left: k}, c.then)
			if ended {
				_, _, err = c.run(h, noCrash(), c.then)
			}
			c.check(t, h, err, fmt.Sprintf("ended before operation %d, then %d", n, k))
			runs++
			if t.Failed() {
				return
			}
			if !ended {
				break
			}
		}
	}
	if runs < 20 {
		t.Errorf("only %d runs: the process ended too rarely", runs)
	}
}

// check requires the new environment in effect, or the old one and an error.
func (c environmentCase) check(t *testing.T, h *fakeMachine, err error, where string) {
	t.Helper()
	file, running := c.content(), true
	if c.bad {
		file, running = "old", c.running
	}
	if c.bad != (err != nil) || err != nil && strings.Contains(err.Error(), "SECRET") {
		t.Errorf("%s: error %v", where, err)
	}
	if !slices.Equal(h.environment, c.want) || !maps.Equal(h.contents(), map[string]string{pathA: file}) {
		t.Errorf("%s: the environment is %q with %v, want %q with %s (%v)", where, h.environment, h.contents(), c.want, file, err)
	}
	if len(h.store) > 0 || h.daemon.active != running || h.daemon.reloads > 0 {
		t.Errorf("%s: %d records, the daemon runs: %v, want %v (%v)", where, len(h.store), h.daemon.active, running, err)
	}
	if loaded := h.daemon.loaded; running && (loaded[pathA] != file || loaded[environmentPath("d.service")] != strings.Join(c.want, "\n")) {
		t.Errorf("%s: the daemon runs with %q, want %q with %s (%v)", where, loaded, c.want, file, err)
	}
	if err != nil {
		return
	}
	starts := h.daemon.starts
	if _, planned, err := c.run(h, noCrash(), c.then); planned != 0 || err != nil || h.daemon.starts != starts {
		t.Errorf("%s: afterwards %d changes are planned (%v)", where, planned, err)
	}
}

// TestEnvironmentThatCannotBeWritten: nothing stays changed, also not the file that was swapped before it.
func TestEnvironmentThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := environmentCase{running: true, old: []string{"B=1"}, file: "new"}
		h := c.machine()
		h.full = environmentPath("d.service")
		_, _, err := c.run(h, noCrash(), []string{"P=x"})
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
		w.Check = func(ctx context.Context, m Machine, candidates map[string]string) error {
			shown = candidates
			if len(h.environment) > 0 {
				t.Errorf("the checker finds the environment changed: %q", h.environment)
			}
			return check(ctx, m, candidates)
		}
		if err := w.do(t.Context(), discardProgress()); err != nil {
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
			ended, _, _ := c.run(h, &crashPoint{left: n}, []string{"P=x"})
			if !ended {
				break
			}
			found = found || len(h.environment) > 1
			h.variables = nil
			_, _, err := h.run(noCrash(), specs(map[string]string{pathA: "old"})...)
			if len(h.store) > 0 || err != nil || len(h.environment) > 1 {
				t.Errorf("ended before operation %d: %q, %d records, %v", n, h.environment, len(h.store), err)
			}
		}
		if !found {
			t.Error("the process never ended after the swap")
		}
	})
}
