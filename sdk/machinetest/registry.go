package machinetest

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/machineadm/machineadm/sdk/machine"
)

// Registry is an in-memory registry without keys. Several goroutines may use it.
type Registry struct {
	// Failures has errors by "set KEY\NAME" and "delete KEY\NAME", in lower case. Set it before use.
	Failures map[string]error

	mutex  sync.Mutex
	keys   map[string]bool
	values map[string]machine.RegistryData
	calls  []string
}

// NewRegistry returns a registry without keys, in which no value can be set.
func NewRegistry() *Registry {
	return &Registry{Failures: map[string]error{}, keys: map[string]bool{}, values: map[string]machine.RegistryData{}}
}

// Put creates a key and sets a value in it.
func (r *Registry) Put(key, name string, data machine.RegistryData) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.keys[strings.ToLower(key)] = true
	r.values[registryPath(key, name)] = data
}

// Calls returns the changes so far, such as `set system\setup\cmdline`, in order and in lower case.
func (r *Registry) Calls() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return append([]string(nil), r.calls...)
}

// Value implements machine.Registry.
func (r *Registry) Value(key, name string) (machine.RegistryData, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	data, ok := r.values[registryPath(key, name)]
	if !ok {
		return machine.RegistryData{}, fmt.Errorf(`read the registry value HKLM\%s\%s: %w`, key, name, fs.ErrNotExist)
	}
	data.Bytes = bytes.Clone(data.Bytes)
	return data, nil
}

// SetValue implements machine.Registry.
func (r *Registry) SetValue(key, name string, data machine.RegistryData) error {
	return r.change("set", key, name, func(path string) error {
		if !r.keys[strings.ToLower(key)] {
			return fs.ErrNotExist
		}
		data.Bytes = bytes.Clone(data.Bytes)
		r.values[path] = data
		return nil
	})
}

// DeleteValue implements machine.Registry.
func (r *Registry) DeleteValue(key, name string) error {
	return r.change("delete", key, name, func(path string) error {
		delete(r.values, path)
		return nil
	})
}

func (r *Registry) change(action, key, name string, change func(path string) error) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	path := registryPath(key, name)
	r.calls = append(r.calls, action+" "+path)
	err := r.Failures[action+" "+path]
	if err == nil {
		err = change(path)
	}
	if err != nil {
		err = fmt.Errorf(`%s the registry value HKLM\%s\%s: %w`, action, key, name, err)
	}
	return err
}

func registryPath(key, name string) string { return strings.ToLower(key + `\` + name) }
