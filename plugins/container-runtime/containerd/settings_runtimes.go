package main

import (
	"cmp"
	"slices"
)

// handlers writes the runtimes. The type of each is always said: containerd 1.x forgets its own default of it as soon as
// a file says anything else about the runtime.
func (b *builder) handlers() {
	at := func(keys ...string) []string {
		keys = append([]string{"containerd"}, keys...)
		return b.split(keys, b.runtime3(keys...))
	}
	if name := b.spec.DefaultRuntime; name != nil {
		b.set("spec.defaultRuntime", cmp.Or(*name, builtin(b.os == "windows")[0]), at("default_runtime_name")...)
	}
	for _, h := range b.withDefault() {
		field := cmp.Or(string(h.field), "spec.cgroupDriver")
		place := func(keys ...string) []string { return at(append([]string{"runtimes", h.name}, keys...)...) }
		b.set(field, h.kind, place("runtime_type")...)
		switch {
		case h.binary == "":
		case isOCI(h.kind):
			b.set(field+".binary", h.binary, place("options", "BinaryName")...)
		default:
			b.set(field+".binary", h.binary, place("runtime_path")...)
		}
		if h.hasBaseSpec() {
			b.set(field+".baseSpec", pathsOf(b.os).baseSpec(h.name), place("base_runtime_spec")...)
		}
		for _, name := range sortedKeys(h.options) {
			b.option(string(h.field.Field("options").Key(name)), h.options[name], place("options", name))
		}
		driver, from := b.spec.CgroupDriver, "spec.cgroupDriver"
		if h.cgroupDriver != "" {
			driver, from = h.cgroupDriver, field+".cgroupDriver"
		}
		if driver != "" && isOCI(h.kind) {
			b.set(from, driver == "systemd", place("options", "SystemdCgroup")...)
		}
	}
}

// cgroups gives the driver of the document to every other OCI runtime: those that files of other people name, and those
// of patches.
func (b *builder) cgroups() {
	if b.spec.CgroupDriver == "" || b.os == "windows" {
		return
	}
	names := slices.Clone(b.others)
	at := b.split([]string{"containerd", "runtimes"}, b.runtime3("containerd", "runtimes"))
	for _, s := range b.all {
		if n := len(at); len(s.path) == n+2 && within(s.path, at) && s.path[n+1] == "runtime_type" {
			names = slices.DeleteFunc(names, func(name string) bool { return name == s.path[n] })
			if kind, _ := s.value.(string); isOCI(kind) {
				names = append(names, s.path[n])
			}
		}
	}
	for _, name := range names {
		path := append(slices.Clone(at), name, "options", "SystemdCgroup")
		if !slices.ContainsFunc(b.all, func(s setting) bool { return slices.Equal(s.path, path) }) {
			b.set("spec.cgroupDriver", b.spec.CgroupDriver == "systemd", path...)
		}
	}
}

// option sets an option of a runtime, a table value by value.
func (b *builder) option(field string, value any, path []string) {
	table, ok := value.(map[string]any)
	if !ok {
		b.set(field, value, path...)
		return
	}
	for _, key := range sortedKeys(table) {
		b.option(field, table[key], append(slices.Clone(path), key))
	}
}

// withDefault adds runc where only the cgroup driver of the document speaks of it.
func (b *builder) withDefault() []handler {
	listed := func(h handler) bool { return h.name == "runc" }
	if b.spec.CgroupDriver == "" || b.os == "windows" || slices.ContainsFunc(b.runtimes, listed) {
		return b.runtimes
	}
	return append(slices.Clone(b.runtimes), handler{name: "runc", kind: runcType})
}
