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

// environmentCase is one wish for variables, beside a file, in one house.
type environmentCase struct {
	name    string
	running bool
	old     []string
	// first is asked for by the process that is ended, then by the runs after it.
	first, then []string
	file        string // the new content of pathA, old when empty
	// want is what is there in the end, nil when old is back.
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
		{name: "taken away", running: true, old: ours, want: theirs},
		{name: "the last one taken away", running: true, old: []string{"P=x", "MACHINEADM_ADDED=P"}},
		{name: "was stopped", old: theirs, first: []string{"P=x"}, want: append(theirs[:2:2], "P=x", "MACHINEADM_ADDED=P")},
		{name: "dies of it", running: true, old: ours, first: []string{"P=die"}, want: ours, bad: true},
		{name: "hangs with it", running: true, old: theirs, first: []string{"P=hang"}, want: theirs, bad: true},
		{name: "hangs with the file", running: true, old: ours, first: []string{"P=z"}, file: "hang", want: ours, bad: true},
		{name: "was stopped, hangs", old: ours, first: []string{"P=hang"}, want: ours, bad: true},
		{name: "changed to good", running: true, old: theirs, first: []string{"P=hang"}, then: []string{"Q=y"}, want: append(theirs[:2:2], "Q=y", "MACHINEADM_ADDED=Q")},
		{name: "changed to bad", running: true, old: ours, first: []string{"P=z"}, then: []string{"P=die"}, want: ours, bad: true},
	}
}

// TestEnvironmentSurvivesTheEnd ends the process before each of its operations, and the process after it before each of
// its own, and wants the third run to bring the machine into a good state.
func TestEnvironmentSurvivesTheEnd(t *testing.T) {
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

func (c environmentCase) house() *house {
	h := newHouse(false, map[string]string{pathA: "old"})
	h.environment = slices.Clone(c.old)
	if c.running {
		h.start()
	}
	return h
}

func (c environmentCase) run(h *house, f *fuse, ask []string) (ended bool, planned int, err error) {
	e := variables(ask...)
	h.variables = &e
	return h.run(f, wish(map[string]string{pathA: c.content()})...)
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
		first := c.house()
		ended, _, _ := c.run(first, &fuse{left: n}, c.first)
		if !ended {
			break
		}
		for k := 0; ; k++ {
			h := first.clone()
			ended, _, err := c.run(h, &fuse{left: k}, c.then)
			if ended {
				_, _, err = c.run(h, forever(), c.then)
			}
			c.judge(t, h, err, fmt.Sprintf("ended before operation %d, then %d", n, k))
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
		t.Errorf("only %d runs: the process was hardly ended", runs)
	}
}

// judge wants the new environment in effect, or the old one back and an error.
func (c environmentCase) judge(t *testing.T, h *house, err error, where string) {
	t.Helper()
	file, running := c.content(), true
	if c.bad {
		file, running = "old", c.running
	}
	if c.bad != (err != nil) || err != nil && strings.Contains(err.Error(), "SECRET") {
		t.Errorf("%s: error %v", where, err)
	}
	if !slices.Equal(h.environment, c.want) || !maps.Equal(h.on(), map[string]string{pathA: file}) {
		t.Errorf("%s: the environment is %q with %v, want %q with %s (%v)", where, h.environment, h.on(), c.want, file, err)
	}
	if len(h.memory) > 0 || h.daemon.active != running || h.daemon.reloads > 0 {
		t.Errorf("%s: %d records, the daemon runs: %v, want %v (%v)", where, len(h.memory), h.daemon.active, running, err)
	}
	if loaded := h.daemon.loaded; running && (loaded[pathA] != file || loaded[environmentPath("d.service")] != strings.Join(c.want, "\n")) {
		t.Errorf("%s: the daemon runs with %q, want %q with %s (%v)", where, loaded, c.want, file, err)
	}
	if err != nil {
		return
	}
	starts := h.daemon.starts
	if _, planned, err := c.run(h, forever(), c.then); planned != 0 || err != nil || h.daemon.starts != starts {
		t.Errorf("%s: afterwards %d changes are planned (%v)", where, planned, err)
	}
}

// TestEnvironmentThatCannotBeWritten leaves nothing changed, the file that was swapped before it included.
func TestEnvironmentThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := environmentCase{running: true, old: []string{"B=1"}, file: "new"}
		h := c.house()
		h.full = environmentPath("d.service")
		_, _, err := c.run(h, forever(), []string{"P=x"})
		wantError(t, err, pluginv1.CodePrecondition, "no space left", "the old configuration is back", "was not restarted")
		if h.on()[pathA] != "old" || !slices.Equal(h.environment, c.old) || h.daemon.starts != 1 || len(h.memory) != 0 {
			t.Errorf("disk %v, environment %q, %d starts, %d records; want nothing changed", h.on(), h.environment, h.daemon.starts, len(h.memory))
		}
	})
}

// TestEnvironmentIsNoCandidate: the checker is shown files, and none for the environment.
func TestEnvironmentIsNoCandidate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := environmentCase{running: true}
		h := c.house()
		e := variables("P=x")
		h.variables = &e
		w := h.process(forever(), wish(map[string]string{pathA: "new"})...)
		shown := map[string]string{}
		check := w.Check
		w.Check = func(ctx context.Context, m Machine, candidates map[string]string) error {
			shown = candidates
			if len(h.environment) > 0 {
				t.Errorf("the checker finds the environment changed: %q", h.environment)
			}
			return check(ctx, m, candidates)
		}
		if err := w.do(t.Context(), silence{}); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(shown, map[string]string{pathA: candidate(pathA)}) {
			t.Errorf("the checker was shown %v", shown)
		}
	})
}

// TestEnvironmentOfAnEarlierPlugin: one that no longer asks for variables puts back what a record of its predecessor holds.
func TestEnvironmentOfAnEarlierPlugin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		found := false
		for n := 0; ; n++ {
			c := environmentCase{running: true, old: []string{"B=1"}}
			h := c.house()
			ended, _, _ := c.run(h, &fuse{left: n}, []string{"P=x"})
			if !ended {
				break
			}
			found = found || len(h.environment) > 1
			h.variables = nil
			_, _, err := h.run(forever(), wish(map[string]string{pathA: "old"})...)
			if len(h.memory) > 0 || err != nil || len(h.environment) > 1 {
				t.Errorf("ended before operation %d: %q, %d records, %v", n, h.environment, len(h.memory), err)
			}
		}
		if !found {
			t.Error("the process never ended behind the swap")
		}
	})
}
