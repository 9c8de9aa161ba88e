package activate

//machineadm:first

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/sdk/internal/crashtest"
	"github.com/machineadm/machineadm/sdk/internal/files"
)

const (
	pathA = "/etc/d/a.conf"
	pathB = "/etc/d/b.conf"
	pathC = "/etc/registries/c.conf" // a companion
)

// absent is the content of a file that must not exist.
const absent = "absent"

func fileWith(path, content string) files.Spec {
	return files.Spec{Path: path, Want: files.State{Exists: true, Content: []byte(content), Mode: 0o644, UID: -1, GID: -1}}
}

func specs(contents map[string]string) []files.Spec {
	var specs []files.Spec
	for _, path := range []string{pathA, pathB, pathC} {
		if content, ok := contents[path]; ok && content == absent {
			specs = append(specs, files.Spec{Path: path})
		} else if ok {
			specs = append(specs, fileWith(path, content))
		}
	}
	return specs
}

// crashCase is a desired configuration on a fake machine.
type crashCase struct {
	name    string
	running bool
	old     map[string]string
	// first is the desired state of the process that is ended, then of the runs after it; nil means first.
	first, then map[string]string
	// replaces reports that the daemon runs instead of another one.
	replaces bool
	// shared reports that the daemon shares a process with others, so that it has no InvocationID.
	shared bool
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
			shared := c
			shared.name, shared.shared = c.name+", in a shared process", true
			c.name, c.replaces = c.name+", instead of another", true
			cases = append(cases, c, shared)
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

// TestActivationSurvivesCrashes ends a run before each of its operations, and the next one before each of its own.
func TestActivationSurvivesCrashes(t *testing.T) {
	t.Parallel()
	for _, c := range crashCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c.check(t)
				crashtest.Everywhere(t, 2, c.subject)
			})
		})
	}
}

func (c crashCase) machine() *fakeMachine {
	h := newFakeMachine(c.running, c.old)
	h.shared = c.shared
	if c.replaces {
		h.addOther()
	}
	return h
}

func (c crashCase) subject() crashtest.Subject {
	h, between := c.machine(), func(*fakeMachine) {}
	return crashtest.Subject{
		First: func(p *crashtest.Point) (int, error) {
			if c.between != nil {
				between = c.between
			}
			return h.run(p, specs(c.first)...)
		},
		Run: func(p *crashtest.Point) (int, error) {
			between(h)
			between = func(*fakeMachine) {}
			return h.run(p, specs(c.wanted())...)
		},
		State: h.state,
	}
}

// check requires that an uninterrupted run ends with the new configuration in effect, or with the old one and an error.
func (c crashCase) check(t *testing.T) {
	h := c.machine()
	_, err := h.run(noCrash(), specs(c.wanted())...)
	want, running := merged(c.old, c.wanted()), true
	bad := strings.Contains(fmt.Sprint(want), "die") || strings.Contains(fmt.Sprint(want), "hang")
	if bad {
		want, running = merged(c.old, nil), c.running
	}
	require.Equal(t, bad, err != nil, err)
	require.Equal(t, running, h.daemon.active)
	require.Empty(t, h.store)
	if other := h.others[otherUnit]; c.replaces {
		require.True(t, other.Enabled)
		require.Equal(t, bad, other.Active == "active")
		require.Equal(t, !bad, h.off[offPath(otherUnit)].Exists)
		require.Equal(t, !bad, h.enabled)
		if !bad {
			for _, unit := range []string{otherUnit, "idle.service"} {
				want[offPath(unit)] = h.contents()[offPath(unit)]
			}
		}
	}
	require.Equal(t, want, h.contents())
	maps.DeleteFunc(want, func(path, _ string) bool { return path == pathC || strings.HasSuffix(path, "-off.conf") })
	if running {
		require.Equal(t, want, h.daemon.loaded)
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
			if !h.endsAt(n, want...) {
				break
			}
			before := h.daemon.starts
			if _, err := h.run(noCrash(), want...); err != nil {
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
			if !h.endsAt(n, want...) {
				break
			}
			if h.contents()[pathA] != "new a" || h.daemon.starts != 1 {
				continue
			}
			found = true
			todo, err := h.process(noCrash(), want...).plan(t.Context())
			if err != nil || todo.Do == nil {
				t.Errorf("ended before operation %d: %+v is planned (%v), want a restart", n, todo, err)
			}
		}
		if !found {
			t.Error("the process never ended between swap and restart")
		}
	})
}
