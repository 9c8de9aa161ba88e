package activate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/sdk/internal/crashtest"
	"github.com/machineadm/machineadm/sdk/internal/files"
	"github.com/machineadm/machineadm/sdk/machine"
)

// fakeMachine is a machine in memory. A process on it can end at any operation; what it did before stays.

// fakeMachine has a disk, a state directory and one daemon.
type fakeMachine struct {
	disk   map[string]files.State
	store  map[string][]byte
	daemon fakeDaemon
	// refuse is the checker's result for a content.
	refuse func(content string) error
	// full is a path that cannot be written.
	full string
	// masked prevents every start of the unit, and shared hides each: the unit has no InvocationID.
	masked, shared bool
	// environment has the entries in the service manager, and variables the desired ones; nil leaves them unmanaged.
	environment []string
	variables   *Environment
	// registry has values by their path in an activation, and values the desired ones.
	registry map[string]machine.RegistryData
	values   []RegistryValue
	// others are the units that the daemon replaces; with any, it is to be enabled. Calls are the calls of the service manager.
	others  map[string]machine.ServiceState
	enabled bool
	calls   []string
	// off is the disk at the last reload: conditions in it are in effect.
	off map[string]files.State
	// claimed are the candidates of claimed files, which the host cleans up.
	claimed []string
}

// otherUnit is the unit that the daemon replaces.
const otherUnit = "e.service"

// addOther adds a daemon that runs, is enabled and is to be replaced.
func (h *fakeMachine) addOther() {
	h.others = map[string]machine.ServiceState{
		otherUnit:       {ID: otherUnit, Exists: true, Enabled: true, Active: "active", InvocationID: "e"},
		"alias.service": {ID: otherUnit}, "d-alias.service": {ID: "d.service"}, "absent.service": {Active: "inactive"},
		"idle.service": {ID: "idle.service", Exists: true, Active: "inactive"},
	}
}

// fakeDaemon reads every file of /etc/d that is not hidden when it starts. With "die" in one it ends, with "hang" it runs and
// is never healthy. As many starts as busy are refused, as systemd does after repeated crashes.
type fakeDaemon struct {
	loaded  map[string]string
	active  bool
	failed  bool
	starts  int
	stops   int
	reloads int
	busy    int
}

func newFakeMachine(running bool, contents map[string]string) *fakeMachine {
	h := &fakeMachine{disk: map[string]files.State{}, store: map[string][]byte{}}
	for name, content := range contents {
		h.disk[name] = files.State{Exists: true, Content: []byte(content), Mode: 0o644}
	}
	if running {
		h.start()
	}
	return h
}

// contents returns the contents of the files, by path.
func (h *fakeMachine) contents() map[string]string {
	out := map[string]string{}
	for name, v := range h.disk {
		out[name] = string(v.Content)
	}
	return out
}

func (h *fakeMachine) start() {
	d := &h.daemon
	d.starts++
	d.loaded = h.contents()
	maps.DeleteFunc(d.loaded, func(name, _ string) bool {
		return strings.HasPrefix(path.Base(name), ".") || name == pathC || strings.HasSuffix(name, "-off.conf")
	})
	if len(h.environment) > 0 {
		d.loaded[environmentPath("d.service")] = strings.Join(h.environment, "\n")
	}
	for path, data := range h.registry {
		d.loaded[path] = data.String()
	}
	d.active, d.failed = true, false
	for _, content := range d.loaded {
		if strings.Contains(content, "die") {
			d.active, d.failed = false, true
		}
	}
}

func (h *fakeMachine) healthy() error {
	if !h.daemon.active {
		return errors.New("it does not answer")
	}
	for _, content := range h.daemon.loaded {
		if strings.Contains(content, "hang") {
			return errors.New("it hangs")
		}
	}
	return nil
}

// process is a run of the plugin on the machine.
func (h *fakeMachine) process(f *crashtest.Point, all ...files.Spec) *activator {
	var configuration, companions []files.Spec
	for _, spec := range all {
		if spec.Path == pathC {
			companions = append(companions, spec)
		} else {
			configuration = append(configuration, spec)
		}
	}
	return &activator{
		Spec: Spec{
			Unit: "d.service", Files: configuration, Companions: companions, Environment: h.variables, Registry: h.values,
			Timeout: time.Second,
			Check: func(_ context.Context, _ machine.Machine, candidates map[string]string) error {
				f.Effect()
				for _, spec := range configuration {
					if !spec.Want.Exists {
						continue
					}
					v, ok := h.disk[candidates[spec.Path]]
					if !ok || v.Mode != spec.Want.Mode {
						return errors.New("there is no candidate of " + spec.Path)
					}
					if h.refuse != nil {
						if err := h.refuse(string(v.Content)); err != nil {
							return err
						}
					}
				}
				return nil
			},
			Healthy:   func(context.Context, machine.Machine, Progress) error { f.Effect(); return h.healthy() },
			Conflicts: slices.Sorted(maps.Keys(h.others)), Enable: h.others != nil,
		},
		files: withEnvironment{withRegistry{fakeFiles{h, f}, fakeRegistry{h, f}}, fakeEnvironments{h, f}, "d.service"},
		store: fakeStore{h, f}, services: fakeServices{h, f}, pause: firstPause,
	}
}

// run plans and makes the changes, as Apply does, after the host has removed the candidates of a killed run.
func (h *fakeMachine) run(f *crashtest.Point, specs ...files.Spec) (planned int, err error) {
	maps.DeleteFunc(h.disk, func(name string, _ files.State) bool { return slices.Contains(h.claimed, name) })
	for _, spec := range specs {
		h.claimed = append(h.claimed, candidate(spec.Path))
	}
	todo, err := h.process(f, specs...).plan(context.Background())
	if err != nil {
		return 0, err
	}
	planned = len(todo.Files)
	for _, c := range todo.Files {
		if err := c.Do(); err != nil {
			return planned, err
		}
	}
	if todo.Do == nil {
		return planned, nil
	}
	return planned + 1, todo.Do(context.Background(), discard{})
}

// endsAt makes a run that may end before an effect, and reports whether it did.
func (h *fakeMachine) endsAt(n int, specs ...files.Spec) bool {
	p := crashtest.At(n)
	return p.Run(func() { _, _ = h.run(p, specs...) }) // the next run has its outcome
}

// state describes the machine for crashtest.
func (h *fakeMachine) state() string {
	loaded := h.daemon.loaded
	if !h.daemon.active {
		loaded = nil
	}
	return fmt.Sprintf("disk %q\nregistry %v\nenvironment %q\n%d records\nrunning %v with %q\nenabled %v\nothers %+v\noff %v",
		h.contents(), h.registry, h.environment, len(h.store), h.daemon.active, loaded, h.enabled, h.others, h.off[offPath(otherUnit)].Exists)
}

type fakeFiles struct {
	h *fakeMachine
	f *crashtest.Point
}

func (s fakeFiles) Lstat(name string) (machine.Info, error) {
	s.f.Effect()
	v, ok := s.h.disk[name]
	if !ok {
		return machine.Info{}, &fs.PathError{Op: "lstat", Path: name, Err: fs.ErrNotExist}
	}
	return machine.Info{Mode: v.Mode, Size: int64(len(v.Content))}, nil
}

func (s fakeFiles) Read(name string) (files.State, error) {
	s.f.Effect()
	return s.h.disk[name], nil
}

func (fakeFiles) Permit(string, []string) error { return nil }

func (s fakeFiles) Put(name string, want files.State) error {
	s.f.Effect()
	if !want.Exists {
		delete(s.h.disk, name)
		return nil
	}
	if name == s.h.full {
		return &fs.PathError{Op: "write", Path: name, Err: errors.New("no space left")}
	}
	s.h.disk[name] = files.State{Exists: true, Content: want.Content, Mode: want.Mode}
	return nil
}

type fakeStore struct {
	h *fakeMachine
	f *crashtest.Point
}

func (s fakeStore) Load(name string) ([]byte, error) {
	s.f.Effect()
	data, ok := s.h.store[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return data, nil
}

func (s fakeStore) Save(name string, data []byte) error {
	s.f.Effect()
	s.h.store[name] = data
	return nil
}

func (s fakeStore) Delete(name string) error {
	s.f.Effect()
	delete(s.h.store, name)
	return nil
}
