package activate

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk/internal/crashtest"
	"github.com/machineadm/machineadm/sdk/machine"
)

// fakeRegistry is the registry of a fakeMachine.
type fakeRegistry struct {
	h *fakeMachine
	f *crashtest.Point
}

func (s fakeRegistry) Value(key, name string) (machine.RegistryData, error) {
	s.f.Effect()
	data, ok := s.h.registry[registryRoot+key+`\`+name]
	if !ok {
		return data, fs.ErrNotExist
	}
	return data, nil
}

func (s fakeRegistry) SetValue(key, name string, data machine.RegistryData) error {
	s.f.Effect()
	if path := registryRoot + key + `\` + name; path != s.h.full {
		s.h.registry[path] = data
		return nil
	}
	return errors.New("no space left")
}

func (s fakeRegistry) DeleteValue(key, name string) error {
	s.f.Effect()
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
	// first are the desired values of the process that is ended, then of the runs after it; nil means first. A value
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

// TestRegistrySurvivesCrashes ends a run before each of its operations, and the next one before each of its own.
func TestRegistrySurvivesCrashes(t *testing.T) {
	t.Parallel()
	for _, c := range registryCases() {
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

func (c registryCase) machine() *fakeMachine {
	h := newFakeMachine(false, map[string]string{pathA: "old"})
	h.registry = registryOf(c.old)
	if !c.stop {
		h.start()
	}
	return h
}

func (c registryCase) run(h *fakeMachine, p *crashtest.Point, ask map[string]machine.RegistryData) (planned int, err error) {
	h.values = nil
	for _, name := range []string{"A", "B", "C", "Others"} {
		if data, ok := ask[name]; ok {
			h.values = append(h.values, RegistryValue{Key: testKey, Name: name, Data: data, Absent: data.Type == 0})
		}
	}
	if c.file == "" {
		return h.run(p)
	}
	return h.run(p, specs(map[string]string{pathA: c.file})...)
}

// check requires that an uninterrupted run ends with the new values in effect, or with the old ones and an error.
func (c registryCase) check(t *testing.T) {
	t.Helper()
	h := c.machine()
	_, err := c.run(h, noCrash(), c.then)
	require.Equal(t, c.bad, err != nil, err)
	want, file, running := registryOf(c.old), "old", !c.stop
	if !c.bad {
		maps.Copy(want, registryOf(c.then))
		maps.DeleteFunc(want, func(_ string, data machine.RegistryData) bool { return data.Type == 0 })
		file, running = cmp.Or(c.file, "old"), true
	}
	require.Equal(t, want, h.registry)
	require.Equal(t, file, h.contents()[pathA])
	require.Empty(t, h.store)
	require.Equal(t, running, h.daemon.active)
	if running {
		loaded := map[string]string{pathA: file}
		for path, data := range want {
			loaded[path] = data.String()
		}
		require.Equal(t, loaded, h.daemon.loaded)
	}
}

// TestRegistryValueThatCannotBeWritten: nothing stays changed, also not what was swapped before it.
func TestRegistryValueThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := registryCase{old: map[string]machine.RegistryData{"A": machine.RegistryText("a")}, file: "new"}
		h := c.machine()
		h.full = registryRoot + testKey + `\B`
		_, err := c.run(h, noCrash(), map[string]machine.RegistryData{"A": machine.RegistryText("x"), "B": machine.RegistryNumber(1)})
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
			p := crashtest.At(n)
			ended := p.Run(func() {
				_, _ = c.run(h, p, map[string]machine.RegistryData{"A": machine.RegistryText("x")}) // the next run has the outcome
			})
			if !ended {
				break
			}
			found = found || h.registry[registryRoot+testKey+`\A`].String() != `REG_SZ "a"`
			h.values = nil
			_, err := h.run(noCrash(), specs(map[string]string{pathA: "old"})...)
			require.NoError(t, err)
			require.Equal(t, registryOf(c.old), h.registry, "ended before operation %d", n)
			require.Empty(t, h.store)
		}
		require.True(t, found, "the process never ended after the swap")
	})
}
