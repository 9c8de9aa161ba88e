package sdk

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
)

const (
	pathA = "/etc/d/a.conf"
	pathB = "/etc/d/b.conf"
	pathC = "/etc/registries/c.conf" // a companion
)

// absent is the content of a file that must not exist.
const absent = "absent"

func specs(contents map[string]string) []FileSpec {
	var specs []FileSpec
	for _, path := range []string{pathA, pathB, pathC} {
		if content, ok := contents[path]; ok && content == absent {
			specs = append(specs, FileSpec{Path: path, Absent: true})
		} else if ok {
			specs = append(specs, FileSpec{Path: path, Content: []byte(content), Mode: 0o644})
		}
	}
	return specs
}

// crashCase is a desired configuration on a fake machine.
type crashCase struct {
	name    string
	running bool
	old     map[string]string
	// first is the desired state of the process that is ended, then that of the runs after it; nil means first.
	first, then map[string]string
	// replaces reports that the daemon runs instead of another one.
	replaces bool
	// between is an external change of the daemon after a crash.
	between func(*fakeMachine)
}

func (c crashCase) wanted() map[string]string {
	if c.then != nil {
		return c.then
	}
	return c.first
}

func crashCases() []crashCase {
	old := map[string]string{pathA: "old a", pathB: "old b"}
	good := map[string]string{pathA: "new a", pathB: "new b"}
	dies := map[string]string{pathA: "new a", pathB: "die"}
	hangs := map[string]string{pathA: "hang", pathB: "new b"}
	one := map[string]string{pathA: "new a", pathB: "old b"}
	restart := func(h *fakeMachine) { h.start() }
	cases := []crashCase{
		{name: "good", running: true, old: old, first: good},
		{name: "dies", running: true, old: old, first: dies},
		{name: "hangs", running: true, old: old, first: hangs},
		{name: "one file differs", running: true, old: old, first: one},
		{name: "first installation", old: map[string]string{}, first: good},
		{name: "first installation dies", old: map[string]string{}, first: dies},
		{name: "was stopped", old: old, first: good},
		{name: "was stopped, hangs", old: old, first: hangs},
		{name: "half there", running: true, old: map[string]string{pathA: "old a"}, first: good},
		{name: "changed to good", running: true, old: old, first: dies, then: good},
		{name: "changed to bad", running: true, old: old, first: good, then: hangs},
		{name: "changed back", running: true, old: old, first: good, then: old},
		{name: "bad changed back", running: true, old: old, first: hangs, then: old},
		{name: "a file is no longer managed", running: true, old: old, first: good, then: map[string]string{pathB: "new b"}},
		{name: "stopped, changed to good", old: old, first: dies, then: good},
		{name: "with a companion", running: true, old: old, first: map[string]string{pathA: "new a", pathC: "new c"}},
		{name: "a companion alone", running: true, old: old, first: map[string]string{pathA: "old a", pathC: "new c"}},
		{name: "stopped, with a companion", old: old, first: map[string]string{pathA: "old a", pathC: "new c"}},
		{name: "dies, with a companion", running: true, old: old, first: map[string]string{pathA: "die", pathC: "new c"}},
		{
			name: "hangs, companions removed and changed", running: true, old: merged(old, map[string]string{pathC: "old c"}),
			first: map[string]string{pathA: "hang", pathC: absent}, then: map[string]string{pathA: "hang", pathC: "new c"},
		},
		{name: "a file removed", running: true, old: old, first: map[string]string{pathA: "new a", pathB: absent}},
		{name: "dies, a file removed", running: true, old: old, first: map[string]string{pathA: "die", pathB: absent}},
	}
	for _, c := range cases[:len(cases):len(cases)] {
		switch c.name {
		case "good", "first installation dies", "was stopped, hangs", "changed to bad", "bad changed back":
			c.name, c.replaces = c.name+", instead of another", true
			cases = append(cases, c)
		}
	}
	cases = append(cases, crashCase{name: "instead of another, nothing else to do", replaces: true, running: true, old: good, first: good})
	for _, c := range cases[:len(cases):len(cases)] {
		c.name, c.between = c.name+", restarted externally", restart
		if c.running {
			cases = append(cases, c)
		}
	}
	// After a refused restart the daemon may still run with its old configuration.
	return append(cases, crashCase{
		name: "hangs, the next restart is refused", running: true, old: old, first: hangs, between: func(h *fakeMachine) { h.daemon.busy = 1 },
	})
}

// TestActivationSurvivesCrashes ends a process before each of its operations, and the next one before each of its own. The
// third run must reach a consistent state.
func TestActivationSurvivesCrashes(t *testing.T) {
	t.Parallel()
	for _, c := range crashCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, c.everywhere)
		})
	}
}

func (c crashCase) everywhere(t *testing.T) {
	runs := 0
	for n := 0; ; n++ {
		first := newFakeMachine(c.running, c.old)
		if c.replaces {
			first.addOther()
		}
		ended, _, _ := first.run(&crashPoint{left: n}, specs(c.first)...)
		if !ended {
			break
		}
		for k := 0; ; k++ {
			h := first.clone()
			if c.between != nil {
				c.between(h)
			}
			ended, _, err := h.run(&crashPoint{left: k}, specs(c.wanted())...)
			if ended {
				_, _, err = h.run(&crashPoint{left: -1}, specs(c.wanted())...)
			}
			where := fmt.Sprintf("ended before operation %d, then %d", n, k)
			c.check(t, h, err, where)
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

// check requires the new configuration in effect, or the old one and an error.
func (c crashCase) check(t *testing.T, h *fakeMachine, err error, where string) {
	t.Helper()
	want, running := merged(c.old, c.wanted()), true
	for _, content := range want {
		if strings.Contains(content, "die") || strings.Contains(content, "hang") {
			want, running = maps.Clone(c.old), c.running
		}
	}
	if bad := !maps.Equal(want, merged(c.old, c.wanted())); bad != (err != nil) {
		t.Errorf("%s: error %v", where, err)
	}
	got := h.contents()
	if other := h.others[otherUnit]; c.replaces {
		on := err != nil // rolled back
		if on != (other.Active == "active") || on == h.off[offPath(otherUnit)].Exists || on == h.enabled || !other.Enabled {
			t.Errorf("%s: the other unit is %+v, the daemon enabled: %v (%v)", where, other, h.enabled, err)
		}
		if content := got[offPath(otherUnit)]; on == strings.Contains(content, "ConditionPathExists=!/\n") {
			t.Errorf("%s: the drop-in of the other unit has %q (%v)", where, content, err)
		}
		delete(got, offPath(otherUnit))
		delete(got, offPath("idle.service"))
	}
	if !maps.Equal(got, want) {
		t.Errorf("%s: the disk holds %v, want %v (%v)", where, got, want, err)
	}
	if len(h.store) > 0 {
		t.Errorf("%s: a record is left (%v)", where, err)
	}
	if h.daemon.active != running {
		t.Errorf("%s: the daemon runs: %v, want %v (%v)", where, h.daemon.active, running, err)
	}
	delete(want, pathC)
	if running && !maps.Equal(h.daemon.loaded, want) {
		t.Errorf("%s: the daemon runs with %v, want %v (%v)", where, h.daemon.loaded, want, err)
	}
	if err != nil {
		return
	}
	starts := h.daemon.starts
	if _, planned, err := h.run(&crashPoint{left: -1}, specs(c.wanted())...); planned != 0 || err != nil || h.daemon.starts != starts {
		t.Errorf("%s: afterwards %d changes are planned (%v)", where, planned, err)
	}
}

func merged(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	maps.DeleteFunc(out, func(_, content string) bool { return content == absent })
	return out
}

// TestActivationRestartsOnce: the invocation shows whether the daemon has read the new files.
func TestActivationRestartsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		want := specs(map[string]string{pathA: "new a", pathB: "new b"})
		skipped := 0
		for n := 0; ; n++ {
			h := newFakeMachine(true, map[string]string{pathA: "old a", pathB: "old b"})
			ended, _, _ := h.run(&crashPoint{left: n}, want...)
			if !ended {
				break
			}
			before := h.daemon.starts
			if _, _, err := h.run(&crashPoint{left: -1}, want...); err != nil {
				t.Fatal(err)
			}
			if h.daemon.starts != 2 {
				t.Errorf("ended before operation %d: the daemon was started %d times, want 2", n, h.daemon.starts)
			}
			if before == 2 {
				skipped++
			}
		}
		if skipped == 0 {
			t.Error("the process never ended after the restart")
		}
	})
}

// TestActivationRestartIsDue: after a crash between swap and restart, a change is planned although the files match.
func TestActivationRestartIsDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		want := specs(map[string]string{pathA: "new a"})
		found := false
		for n := 0; ; n++ {
			h := newFakeMachine(true, map[string]string{pathA: "old a"})
			ended, _, _ := h.run(&crashPoint{left: n}, want...)
			if !ended {
				break
			}
			if h.contents()[pathA] != "new a" || h.daemon.starts != 1 {
				continue
			}
			found = true
			changes, err := h.process(&crashPoint{left: -1}, want...).plan(t.Context())
			if err != nil || len(changes) != 1 {
				t.Errorf("ended before operation %d: %d changes are planned (%v), want 1", n, len(changes), err)
			}
		}
		if !found {
			t.Error("the process never ended between swap and restart")
		}
	})
}
