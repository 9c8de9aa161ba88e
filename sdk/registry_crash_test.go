package sdk

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk/machine"
)

// fakeRegistry is the registry of a fakeMachine.
type fakeRegistry struct {
	h *fakeMachine
	f *crashPoint
}

func (s fakeRegistry) Value(key, name string) (machine.RegistryData, error) {
	s.f.tick()
	data, ok := s.h.registry[registryRoot+key+`\`+name]
	if !ok {
		return data, fs.ErrNotExist
	}
	return data, nil
}

func (s fakeRegistry) SetValue(key, name string, data machine.RegistryData) error {
	s.f.tick()
	if path := registryRoot + key + `\` + name; path != s.h.full {
		s.h.registry[path] = data
		return nil
	}
	return errors.New("no space left")
}

func (s fakeRegistry) DeleteValue(key, name string) error {
	s.f.tick()
	delete(s.h.registry, registryRoot+key+`\`+name)
	return nil
}

const testKey = `SYSTEM\D`

func registryOf(values map[string]machine.RegistryData) map[string]machine.RegistryData {
	out := map[string]machine.RegistryData{}
	for name, data := range values {
		out[registryRoot+testKey+`\`+name] = data
	}
	return out
}

// registryCase has desired values of the registry and a file on a fake machine.
type registryCase struct {
	name string
	stop bool // the daemon does not run before
	old  map[string]machine.RegistryData
	// first are the desired values of the process that is ended, then those of the runs after it; nil means first. A value
	// without data is absent.
	first, then map[string]machine.RegistryData
	file        string // the new content of pathA, old when empty
	bad         bool
}

func registryCases() []registryCase {
	type values = map[string]machine.RegistryData
	text, number := machine.RegistryText, machine.RegistryNumber
	list := machine.RegistryData{Type: 7, Bytes: []byte("a\x00\x00\x00\x00\x00")}
	old := values{"A": text("a"), "B": number(1), "Others": list}
	gone := machine.RegistryData{}
	return []registryCase{
		{name: "the first", first: values{"A": text("x"), "B": number(2)}},
		{name: "changed", old: old, first: values{"A": text("x"), "B": number(2)}},
		{name: "changed with a file", old: old, first: values{"A": text("x"), "B": gone}, file: "new"},
		{name: "of another type", old: old, first: values{"Others": text("x")}},
		{name: "was stopped", stop: true, old: old, first: values{"A": gone}},
		{name: "ends with it", old: old, first: values{"A": text("die"), "B": gone, "C": number(1), "Others": number(0)}, bad: true},
		{name: "hangs with the file", old: old, first: values{"A": text("x"), "B": number(2)}, file: "hang", bad: true},
		{name: "was stopped, hangs", stop: true, old: old, first: values{"A": text("hang"), "C": number(1)}, bad: true},
		{name: "changed to good", old: old, first: values{"A": text("hang"), "C": number(1)}, then: values{"B": number(2)}},
		{name: "changed to bad", old: old, first: values{"A": text("x")}, then: values{"B": gone, "C": text("die")}, bad: true},
	}
}

// TestRegistrySurvivesCrashes ends a process before each of its operations, and the next one before each of its own. The
// third run must reach a consistent state.
func TestRegistrySurvivesCrashes(t *testing.T) {
	t.Parallel()
	for _, c := range registryCases() {
		if c.then == nil {
			c.then = c.first
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, c.everywhere)
		})
	}
}

func (c registryCase) machine() *fakeMachine {
	h := newFakeMachine(false, map[string]string{pathA: "old"})
	h.registry = registryOf(c.old)
	if !c.stop {
		h.start()
	}
	return h
}

func (c registryCase) run(h *fakeMachine, f *crashPoint, ask map[string]machine.RegistryData) (ended bool, planned int, err error) {
	h.values = nil
	for _, name := range []string{"A", "B", "C", "Others"} {
		if data, ok := ask[name]; ok {
			h.values = append(h.values, RegistryValue{Key: testKey, Name: name, Data: data, Absent: data.Type == 0})
		}
	}
	if c.file == "" {
		return h.run(f)
	}
	return h.run(f, specs(map[string]string{pathA: c.file})...)
}

func (c registryCase) everywhere(t *testing.T) {
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
			c.check(t, h, err, fmt.Sprintf("ended before operation %d, then %d (%v)", n, k, err))
			runs++
			if !ended {
				break
			}
		}
	}
	require.Greater(t, runs, 20, "the process ended too rarely")
}

// check requires the new values in effect, or the old ones and an error.
func (c registryCase) check(t *testing.T, h *fakeMachine, err error, where string) {
	t.Helper()
	require.Equal(t, c.bad, err != nil, where)
	want, file, running := registryOf(c.old), "old", !c.stop
	if !c.bad {
		maps.Copy(want, registryOf(c.then))
		maps.DeleteFunc(want, func(_ string, data machine.RegistryData) bool { return data.Type == 0 })
		running = true
		if c.file != "" {
			file = c.file
		}
	}
	require.Equal(t, want, h.registry, where)
	require.Equal(t, file, h.contents()[pathA], where)
	require.Empty(t, h.store, where)
	require.Equal(t, running, h.daemon.active, where)
	if running {
		loaded := map[string]string{pathA: file}
		for path, data := range want {
			loaded[path] = data.String()
		}
		require.Equal(t, loaded, h.daemon.loaded, where)
	}
	if err != nil {
		return
	}
	starts := h.daemon.starts
	_, planned, err := c.run(h, noCrash(), c.then)
	require.NoError(t, err, where)
	require.Zero(t, planned, where)
	require.Equal(t, starts, h.daemon.starts, where)
}

// TestRegistryValueThatCannotBeWritten: nothing stays changed, also not what was swapped before it.
func TestRegistryValueThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := registryCase{old: map[string]machine.RegistryData{"A": machine.RegistryText("a")}, file: "new"}
		h := c.machine()
		h.full = registryRoot + testKey + `\B`
		_, _, err := c.run(h, noCrash(), map[string]machine.RegistryData{"A": machine.RegistryText("x"), "B": machine.RegistryNumber(1)})
		wantError(t, err, pluginv1.CodePrecondition, "no space left", "the old configuration was restored", "was not restarted")
		require.Equal(t, registryOf(c.old), h.registry)
		require.Equal(t, "old", h.contents()[pathA])
		require.Equal(t, 1, h.daemon.starts)
		require.Empty(t, h.store)
	})
}

// TestRegistryOfAnEarlierPlugin: a version without registry values rolls back those in the record of an earlier version.
func TestRegistryOfAnEarlierPlugin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		found := false
		for n := 0; ; n++ {
			c := registryCase{old: map[string]machine.RegistryData{"A": machine.RegistryText("a")}}
			h := c.machine()
			ended, _, _ := c.run(h, &crashPoint{left: n}, map[string]machine.RegistryData{"A": machine.RegistryText("x")})
			if !ended {
				break
			}
			found = found || h.registry[registryRoot+testKey+`\A`].String() != `REG_SZ "a"`
			h.values = nil
			_, _, err := h.run(noCrash(), specs(map[string]string{pathA: "old"})...)
			require.NoError(t, err)
			require.Equal(t, registryOf(c.old), h.registry, "ended before operation %d", n)
			require.Empty(t, h.store)
		}
		require.True(t, found, "the process never ended after the swap")
	})
}
