package settings

import (
	"cmp"
	"slices"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// handlers sets the runtimes. It always sets the type: containerd 1.x drops its default for a runtime as soon as a file
// sets anything else of that runtime.
func (b *builder) handlers() {
	if name := b.Spec.DefaultRuntime; name != nil {
		b.set("spec.defaultRuntime", cmp.Or(*name, v1alpha1.BuiltinRuntimes(b.OS == "windows")[0]), b.runtime("containerd", "default_runtime_name")...)
	}
	runtimes, driver := b.Runtimes, b.Spec.CgroupDriver
	if driver != "" && b.OS != "windows" && !slices.ContainsFunc(runtimes, func(h Runtime) bool { return h.Name == "runc" }) {
		runtimes = append(slices.Clone(runtimes), Runtime{Name: "runc", shim: runcShim})
	}
	for _, h := range runtimes {
		b.lacking(h)
		field := cmp.Or(string(h.Field), "spec.cgroupDriver")
		at := func(keys ...string) []string {
			return b.runtime(append([]string{"containerd", "runtimes", h.Name}, keys...)...)
		}
		b.set(field, h.shim, at("runtime_type")...)
		if h.binary != "" && IsOCI(h.shim) {
			b.set(field+".binary", h.binary, at("options", "BinaryName")...)
		} else if h.binary != "" {
			b.set(field+".binary", h.binary, at("runtime_path")...)
		}
		if h.HasBaseSpec() {
			b.set(field+".baseSpec", PathsOf(b.OS).BaseSpec(h.Name), at("base_runtime_spec")...)
		}
		for _, name := range sortedKeys(h.options) {
			b.option(string((h.Field + ".options").Key(name)), h.options[name], at("options", name))
		}
		switch {
		case !IsOCI(h.shim):
		case h.cgroupDriver != "":
			b.set(field+".cgroupDriver", h.cgroupDriver == "systemd", at("options", "SystemdCgroup")...)
		case driver != "":
			b.set("spec.cgroupDriver", driver == "systemd", at("options", "SystemdCgroup")...)
		}
	}
}

// lacking refuses what a release cannot do for a runtime.
func (b *builder) lacking(h Runtime) {
	b.until(h.shim == runcV1Shim, h.Field+".type", "has no such type of runtime any more", "use "+runcShim, 0)
	if !IsOCI(h.shim) {
		return
	}
	for _, name := range sortedKeys(h.options) {
		at := (h.Field + ".options").Key(name)
		b.until(name == "CriuPath", at, "has no such option any more", "put criu onto the daemon's path and remove it", 0)
		b.since(name == "TaskApiAddress" || name == "TaskApiVersion", at, "such option", 2, 0)
	}
}

// option sets an option of a runtime, a table value by value.
func (b *builder) option(field string, value any, path []string) {
	table, ok := value.(map[string]any)
	if !ok {
		b.set(field, value, path...)
	}
	for _, key := range sortedKeys(table) {
		b.option(field, table[key], append(slices.Clone(path), key))
	}
}

// cgroups sets the driver of the document for every other OCI runtime, of foreign files and of patches.
func (b *builder) cgroups() {
	if b.Spec.CgroupDriver == "" || b.OS == "windows" {
		return
	}
	names := slices.Clone(b.Others)
	at := b.runtime("containerd", "runtimes")
	n := len(at)
	for _, s := range b.all {
		if len(s.Path) == n+2 && within(s.Path, at) && s.Path[n+1] == "runtime_type" {
			names = slices.DeleteFunc(names, func(name string) bool { return name == s.Path[n] })
			if shim, _ := s.Value.(string); IsOCI(shim) {
				names = append(names, s.Path[n])
			}
		}
	}
	for _, name := range names {
		path := append(slices.Clone(at), name, "options", "SystemdCgroup")
		if !slices.ContainsFunc(b.all, func(s Setting) bool { return s.Is(path...) }) {
			b.set("spec.cgroupDriver", b.Spec.CgroupDriver == "systemd", path...)
		}
	}
}
