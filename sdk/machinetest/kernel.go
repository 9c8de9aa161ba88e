package machinetest

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"sync"
	"syscall"

	"github.com/machineadm/machineadm/sdk/machine"
)

// Kernel is an in-memory kernel. Set its fields before use; then several goroutines may use it.
type Kernel struct {
	// Parameters has the values, by path below /proc/sys.
	Parameters map[string]string
	// Refuse has the errors of parameters that cannot be written.
	Refuse map[string]syscall.Errno
	// Adjust replaces a written value, as the kernel does when it rounds or clamps one.
	Adjust map[string]func(written string) string
	// Modules has the modules by name, with underscores. Others are absent.
	Modules map[string]machine.ModuleState
	// Appears has parameters that exist once a module is loaded.
	Appears map[string]map[string]string

	mutex  sync.Mutex
	writes []Write
	loads  []string
}

// Write is one write of a parameter, refused ones included.
type Write struct{ Key, Value string }

// NewKernel returns a kernel with these parameters and no modules.
func NewKernel(parameters map[string]string) *Kernel {
	k := &Kernel{
		Parameters: map[string]string{}, Refuse: map[string]syscall.Errno{}, Adjust: map[string]func(string) string{},
		Modules: map[string]machine.ModuleState{}, Appears: map[string]map[string]string{},
	}
	maps.Copy(k.Parameters, parameters)
	return k
}

// Writes returns the writes so far, in order.
func (k *Kernel) Writes() []Write {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return append([]Write(nil), k.writes...)
}

// Loads returns the modules that were loaded so far, in order.
func (k *Kernel) Loads() []string {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return append([]string(nil), k.loads...)
}

// Parameter implements machine.Kernel.
func (k *Kernel) Parameter(key string) (string, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	value, ok := k.Parameters[key]
	if !ok {
		return "", fmt.Errorf("read kernel parameter: %s: %w", key, fs.ErrNotExist)
	}
	return value, nil
}

// SetParameter implements machine.Kernel.
func (k *Kernel) SetParameter(key, value string) error {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.writes = append(k.writes, Write{Key: key, Value: value})
	if _, ok := k.Parameters[key]; !ok {
		return fmt.Errorf("set kernel parameter: %s: %w", key, syscall.ENOENT)
	}
	if errno, ok := k.Refuse[key]; ok {
		return fmt.Errorf("set kernel parameter: %s: %w", key, errno)
	}
	if adjust, ok := k.Adjust[key]; ok {
		value = adjust(value)
	}
	k.Parameters[key] = value
	return nil
}

// Module implements machine.Kernel.
func (k *Kernel) Module(name string) (machine.ModuleState, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.Modules[strings.ReplaceAll(name, "-", "_")], nil
}

// LoadModule implements machine.Kernel.
func (k *Kernel) LoadModule(_ context.Context, name string) error {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	name = strings.ReplaceAll(name, "-", "_")
	switch k.Modules[name] {
	case machine.ModuleAbsent:
		return fmt.Errorf("load kernel module %s: %w", name, &machine.CommandError{
			Name: "modprobe", ExitCode: 1, Stderr: "modprobe: FATAL: Module " + name + " not found",
		})
	case machine.ModuleLoadable:
		k.loads = append(k.loads, name)
		k.Modules[name] = machine.ModuleLoaded
		maps.Copy(k.Parameters, k.Appears[name])
	default: // loaded or built in
	}
	return nil
}
