package settings

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
	if name := b.Spec.DefaultRuntime; name != nil {
		b.set("spec.defaultRuntime", cmp.Or(*name, builtin(b.OS == "windows")[0]), at("default_runtime_name")...)
	}
	for _, h := range b.withDefault() {
		field := cmp.Or(string(h.Field), "spec.cgroupDriver")
		place := func(keys ...string) []string { return at(append([]string{"runtimes", h.Name}, keys...)...) }
		b.set(field, h.kind, place("runtime_type")...)
		switch {
		case h.binary == "":
		case IsOCI(h.kind):
			b.set(field+".binary", h.binary, place("options", "BinaryName")...)
		default:
			b.set(field+".binary", h.binary, place("runtime_path")...)
		}
		if h.HasBaseSpec() {
			b.set(field+".baseSpec", PathsOf(b.OS).BaseSpec(h.Name), place("base_runtime_spec")...)
		}
		for _, name := range sortedKeys(h.options) {
			b.option(string(h.Field.Field("options").Key(name)), h.options[name], place("options", name))
		}
		driver, from := b.Spec.CgroupDriver, "spec.cgroupDriver"
		if h.cgroupDriver != "" {
			driver, from = h.cgroupDriver, field+".cgroupDriver"
		}
		if driver != "" && IsOCI(h.kind) {
			b.set(from, driver == "systemd", place("options", "SystemdCgroup")...)
		}
	}
}

// cgroups gives the driver of the document to every other OCI runtime: those that files of other people name, and those
// of patches.
func (b *builder) cgroups() {
	if b.Spec.CgroupDriver == "" || b.OS == "windows" {
		return
	}
	names := slices.Clone(b.Others)
	at := b.split([]string{"containerd", "runtimes"}, b.runtime3("containerd", "runtimes"))
	for _, s := range b.all {
		if n := len(at); len(s.Path) == n+2 && within(s.Path, at) && s.Path[n+1] == "runtime_type" {
			names = slices.DeleteFunc(names, func(name string) bool { return name == s.Path[n] })
			if kind, _ := s.Value.(string); IsOCI(kind) {
				names = append(names, s.Path[n])
			}
		}
	}
	for _, name := range names {
		path := append(slices.Clone(at), name, "options", "SystemdCgroup")
		if !slices.ContainsFunc(b.all, func(s Setting) bool { return slices.Equal(s.Path, path) }) {
			b.set("spec.cgroupDriver", b.Spec.CgroupDriver == "systemd", path...)
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
	listed := func(h handler) bool { return h.Name == "runc" }
	if b.Spec.CgroupDriver == "" || b.OS == "windows" || slices.ContainsFunc(b.Runtimes, listed) {
		return b.Runtimes
	}
	return append(slices.Clone(b.Runtimes), handler{Name: "runc", kind: runcType})
}
