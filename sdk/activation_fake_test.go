package sdk

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/sdk/machine"
)

// The house below is a machine in memory whose every operation can be the last one of a process: what was done before
// it stays, what would have come after it does not happen.

// crash is what the panic of a process that ends carries.
type crash struct{}

// fuse ends the process before its n-th operation, and refuses everything after that, clean-ups included.
type fuse struct {
	left  int // operations until the end; below 0 the process lives for ever
	blown bool
	count int
}

func (f *fuse) tick() {
	f.count++
	if f.left == 0 {
		f.blown = true
	}
	if f.blown {
		panic(crash{})
	}
	f.left--
}

// house is the machine: its disk, its state directory, its one daemon.
type house struct {
	disk   map[string]version
	memory map[string][]byte
	daemon fakeDaemon
	// refuse is the checker's word on a content.
	refuse func(content string) error
	// full makes writes of a path fail.
	full string
	// masked makes the unit one that cannot be started.
	masked bool
	// environment is what the service manager keeps for the daemon, and variables what is wanted of it; nil: nobody asks.
	environment []string
	variables   *ServiceEnvironment
	// others are units beside the daemon, which it replaces; with any, it shall be enabled. Calls are what is asked for.
	others  map[string]machine.ServiceState
	enabled bool
	calls   []string
	// claimed are the names beside claimed files that the host cleans up.
	claimed []string
}

// otherUnit is the one that the daemon replaces; the next two are installed, and an alias of it.
const otherUnit = "e.service"

// replacing puts a daemon into the house that runs and is enabled, and is to be replaced.
func (h *house) replacing() {
	h.others = map[string]machine.ServiceState{
		otherUnit:       {ID: otherUnit, Exists: true, Enabled: true, StartsAtBoot: true, Active: "active", InvocationID: "e"},
		"alias.service": {ID: otherUnit}, "d-alias.service": {ID: "d.service"}, "absent.service": {Active: "inactive"},
		"idle.service": {ID: "idle.service", Exists: true, Active: "inactive"},
	}
}

// fakeDaemon reads every file of /etc/d that is not hidden when it starts. With one that says "die" it ends, with one that says "hang" it
// runs and is never healthy; "busy" refuses that many starts, as systemd does after a crash loop.
type fakeDaemon struct {
	loaded  map[string]string
	active  bool
	failed  bool
	starts  int
	stops   int
	reloads int
	busy    int
}

func newHouse(running bool, files map[string]string) *house {
	h := &house{disk: map[string]version{}, memory: map[string][]byte{}}
	for name, content := range files {
		h.disk[name] = version{Exists: true, Content: []byte(content), Mode: 0o644}
	}
	if running {
		h.start()
	}
	return h
}

// on returns what the disk holds, by path.
func (h *house) on() map[string]string {
	out := map[string]string{}
	for name, v := range h.disk {
		out[name] = string(v.Content)
	}
	return out
}

func (h *house) start() {
	d := &h.daemon
	d.starts++
	d.loaded = h.on()
	maps.DeleteFunc(d.loaded, func(name, _ string) bool { return strings.HasPrefix(path.Base(name), ".") || name == pathC })
	if len(h.environment) > 0 {
		d.loaded[environmentPath("d.service")] = strings.Join(h.environment, "\n")
	}
	d.active, d.failed = true, false
	for _, content := range d.loaded {
		if strings.Contains(content, "die") {
			d.active, d.failed = false, true
		}
	}
}

func (h *house) healthy() error {
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

// process is one run of the plugin in the house.
func (h *house) process(f *fuse, all ...FileSpec) *activator {
	var files, companions []FileSpec
	for _, spec := range all {
		if spec.Path == pathC {
			companions = append(companions, spec)
		} else {
			files = append(files, spec)
		}
	}
	return &activator{
		Activation: Activation{
			Unit: "d.service", Files: files, Companions: companions, Environment: h.variables, Timeout: time.Second,
			Check: func(_ context.Context, _ Machine, candidates map[string]string) error {
				f.tick()
				for _, spec := range files {
					if spec.Absent {
						continue
					}
					v, ok := h.disk[candidates[spec.Path]]
					if !ok || v.Mode != spec.Mode {
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
			Healthy: func(context.Context, Machine, Progress) error { f.tick(); return h.healthy() },
			Instead: slices.Sorted(maps.Keys(h.others)), Enable: h.others != nil,
		},
		files:  withEnvironment{houseFiles{h, f}, houseEnvironments{h, f}, "d.service"},
		memory: houseMemory{h, f}, services: houseServices{h, f}, pause: firstPause,
	}
}

// run plans and does what is planned, as an Apply would, after the host has removed what a killed run left beside the files that
// it had claimed. It says whether the process was ended.
func (h *house) run(f *fuse, files ...FileSpec) (ended bool, planned int, err error) {
	maps.DeleteFunc(h.disk, func(name string, _ version) bool { return slices.Contains(h.claimed, name) })
	for _, spec := range files {
		h.claimed = append(h.claimed, candidate(spec.Path))
	}
	defer func() {
		if cause := recover(); cause != nil {
			if _, ok := cause.(crash); !ok {
				panic(cause)
			}
			ended = true
		}
	}()
	changes, err := h.process(f, files...).plan(context.Background())
	if err != nil {
		return false, 0, err
	}
	for _, c := range changes {
		if err := c.Do(context.Background(), silence{}); err != nil {
			return false, len(changes), err
		}
	}
	return false, len(changes), nil
}

func (h *house) clone() *house {
	c := *h
	c.disk, c.memory = maps.Clone(h.disk), maps.Clone(h.memory)
	c.daemon.loaded, c.environment = maps.Clone(h.daemon.loaded), slices.Clone(h.environment)
	c.others, c.calls = maps.Clone(h.others), slices.Clone(h.calls)
	c.claimed = slices.Clone(h.claimed)
	return &c
}

type houseFiles struct {
	h *house
	f *fuse
}

func (s houseFiles) Stat(name string) (machine.Info, error) {
	s.f.tick()
	v, ok := s.h.disk[name]
	if !ok {
		return machine.Info{}, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return machine.Info{Mode: v.Mode, Size: int64(len(v.Content))}, nil
}

func (s houseFiles) Lstat(name string) (machine.Info, error) { return s.Stat(name) }

func (s houseFiles) ReadFile(name string) ([]byte, error) {
	s.f.tick()
	return s.h.disk[name].Content, nil
}

func (s houseFiles) put(name string, want version) error {
	s.f.tick()
	if !want.Exists {
		delete(s.h.disk, name)
		return nil
	}
	if name == s.h.full {
		return &fs.PathError{Op: "write", Path: name, Err: errors.New("no space left")}
	}
	s.h.disk[name] = version{Exists: true, Content: want.Content, Mode: want.Mode}
	return nil
}

type houseMemory struct {
	h *house
	f *fuse
}

func (s houseMemory) Load(name string) ([]byte, error) {
	s.f.tick()
	data, ok := s.h.memory[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return data, nil
}

func (s houseMemory) Save(name string, data []byte) error {
	s.f.tick()
	s.h.memory[name] = data
	return nil
}

func (s houseMemory) Delete(name string) error {
	s.f.tick()
	delete(s.h.memory, name)
	return nil
}
