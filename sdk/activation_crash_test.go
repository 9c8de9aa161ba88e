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

// absent is the content of a file that shall not be there.
const absent = "absent"

func wish(contents map[string]string) []FileSpec {
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

// crashCase is one wish in one house.
type crashCase struct {
	name    string
	running bool
	old     map[string]string
	// first is what the process wants that is ended; then what the runs after it want, first when nil.
	first, then map[string]string
	// replaces says that the daemon takes the place of another one.
	replaces bool
	// between is what somebody else does to the daemon after a crash.
	between func(*house)
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
	restart := func(h *house) { h.start() }
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
		c.name, c.between = c.name+", restarted by somebody", restart
		if c.running {
			cases = append(cases, c)
		}
	}
	// A restart that is refused is no proof of anything: the daemon may still run with what it had.
	return append(cases, crashCase{
		name: "hangs, the next restart is refused", running: true, old: old, first: hangs, between: func(h *house) { h.daemon.busy = 1 },
	})
}

// TestActivationSurvivesItsEnd ends the process before each of its operations, and the process after it before each of
// its own, and wants the third run to bring the machine into a good state.
func TestActivationSurvivesItsEnd(t *testing.T) {
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
		first := newHouse(c.running, c.old)
		if c.replaces {
			first.replacing()
		}
		ended, _, _ := first.run(&fuse{left: n}, wish(c.first)...)
		if !ended {
			break
		}
		for k := 0; ; k++ {
			h := first.clone()
			if c.between != nil {
				c.between(h)
			}
			ended, _, err := h.run(&fuse{left: k}, wish(c.wanted())...)
			if ended {
				_, _, err = h.run(&fuse{left: -1}, wish(c.wanted())...)
			}
			where := fmt.Sprintf("ended before operation %d, then %d", n, k)
			c.judge(t, h, err, where)
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

// judge wants the new configuration in effect, or the old one back and an error.
func (c crashCase) judge(t *testing.T, h *house, err error, where string) {
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
	if got := h.on(); !maps.Equal(got, want) {
		t.Errorf("%s: the disk holds %v, want %v (%v)", where, got, want, err)
	}
	if len(h.memory) > 0 {
		t.Errorf("%s: a record is left (%v)", where, err)
	}
	if h.daemon.active != running {
		t.Errorf("%s: the daemon runs: %v, want %v (%v)", where, h.daemon.active, running, err)
	}
	delete(want, pathC)
	if running && !maps.Equal(h.daemon.loaded, want) {
		t.Errorf("%s: the daemon runs with %v, want %v (%v)", where, h.daemon.loaded, want, err)
	}
	if other := h.others[otherUnit]; c.replaces {
		on := err != nil // rolled back
		if on != other.Enabled || on != (other.Active == "active") || on == h.enabled {
			t.Errorf("%s: the other unit is %+v, the daemon enabled: %v (%v)", where, other, h.enabled, err)
		}
	}
	if err != nil {
		return
	}
	starts := h.daemon.starts
	if _, planned, err := h.run(&fuse{left: -1}, wish(c.wanted())...); planned != 0 || err != nil || h.daemon.starts != starts {
		t.Errorf("%s: afterwards %d changes are planned (%v)", where, planned, err)
	}
}

func merged(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	maps.DeleteFunc(out, func(_, content string) bool { return content == absent })
	return out
}

// TestActivationAfterARestartDoesNotRestartAgain: the invocation says that the daemon has read the new files.
func TestActivationAfterARestartDoesNotRestartAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		want := wish(map[string]string{pathA: "new a", pathB: "new b"})
		skipped := 0
		for n := 0; ; n++ {
			h := newHouse(true, map[string]string{pathA: "old a", pathB: "old b"})
			ended, _, _ := h.run(&fuse{left: n}, want...)
			if !ended {
				break
			}
			before := h.daemon.starts
			if _, _, err := h.run(&fuse{left: -1}, want...); err != nil {
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

// TestActivationRestartIsDue: a crash between swap and restart is seen by the plan, though the files are as wanted.
func TestActivationRestartIsDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		want := wish(map[string]string{pathA: "new a"})
		found := false
		for n := 0; ; n++ {
			h := newHouse(true, map[string]string{pathA: "old a"})
			ended, _, _ := h.run(&fuse{left: n}, want...)
			if !ended {
				break
			}
			if h.on()[pathA] != "new a" || h.daemon.starts != 1 {
				continue
			}
			found = true
			changes, err := h.process(&fuse{left: -1}, want...).plan(t.Context())
			if err != nil || len(changes) != 1 {
				t.Errorf("ended before operation %d: %d changes are planned (%v), want 1", n, len(changes), err)
			}
		}
		if !found {
			t.Error("the process never ended between swap and restart")
		}
	})
}
