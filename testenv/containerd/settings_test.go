package containerd_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/machineadm/machineadm/testenv/containerd"
)

// path is the position of a value in a configuration: the keys of its tables, then its own.
type path []string

func (p path) String() string {
	quoted := slices.Clone(p)
	for i, key := range quoted {
		if strings.Contains(key, ".") {
			quoted[i] = `"` + key + `"`
		}
	}
	return strings.Join(quoted, ".")
}

// setting is one thing that the plugin sets, and its path in a file of each version. A version that has no place for
// it is missing.
type setting struct {
	name  string
	at    map[int]path
	other any // not the default of any version
}

// The highest version of a file that each containerd reads, which is also the one that `config dump` prints.
var fileVersion = map[containerd.Version]int{containerd.V16: 2, containerd.V17: 2, containerd.V21: 3, containerd.V23: 4}

// settings are the facts of the keys; TestKeys compares them with every `config default`.
func settings() []setting {
	cri := func(keys ...string) path { return append(path{"plugins", "io.containerd.grpc.v1.cri"}, keys...) }
	images := func(keys ...string) path { return append(path{"plugins", "io.containerd.cri.v1.images"}, keys...) }
	runtime := func(keys ...string) path { return append(path{"plugins", "io.containerd.cri.v1.runtime"}, keys...) }
	server := func(name, key string) path { return path{"plugins", "io.containerd.server.v1." + name, key} }
	split := func(two, three path) map[int]path { return map[int]path{2: two, 3: three, 4: three} }
	same := func(keys ...string) map[int]path { return split(keys, keys) }
	runc := []string{"containerd", "runtimes", "runc"}
	inRunc := func(keys ...string) map[int]path {
		keys = slices.Concat(runc, keys)
		return split(cri(keys...), runtime(keys...))
	}
	return []setting{
		{"sandbox image", split(cri("sandbox_image"), images("pinned_images", "sandbox")), "r.test/pause:1"},
		{"snapshotter", split(cri("containerd", "snapshotter"), images("snapshotter")), "native"},
		{"max concurrent downloads", split(cri("max_concurrent_downloads"), images("max_concurrent_downloads")), int64(7)},
		{"registry config path", split(cri("registry", "config_path"), images("registry", "config_path")), "/etc/r.d"},
		{"default runtime", split(cri("containerd", "default_runtime_name"), runtime("containerd", "default_runtime_name")), "other"},
		{"runc: type", inRunc("runtime_type"), "io.containerd.other.v2"},
		{"runc: base spec", inRunc("base_runtime_spec"), "/etc/cri-base.json"},
		{"runc: SystemdCgroup", inRunc("options", "SystemdCgroup"), true},
		{"runc: BinaryName", inRunc("options", "BinaryName"), "/usr/bin/other"},
		{"cni bin dir", split(cri("cni", "bin_dir"), runtime("cni", "bin_dir")), "/cni/bin"},
		{"cni bin dirs", map[int]path{3: runtime("cni", "bin_dirs"), 4: runtime("cni", "bin_dirs")}, []any{"/cni/bins"}},
		{"cni conf dir", split(cri("cni", "conf_dir"), runtime("cni", "conf_dir")), "/cni/net.d"},
		{"cdi", split(cri("enable_cdi"), runtime("enable_cdi")), nil},
		{"cdi directories", split(cri("cdi_spec_dirs"), runtime("cdi_spec_dirs")), []any{"/cdi"}},
		{"nri disabled", same("plugins", "io.containerd.nri.v1.nri", "disable"), nil},
		{"disabled plugins", same("disabled_plugins"), nil},
		{"oom score", same("oom_score"), int64(-5)},
		{"log level", same("debug", "level"), "debug"},
		{"metrics address", map[int]path{2: {"metrics", "address"}, 3: {"metrics", "address"}, 4: server("metrics", "address")}, "127.0.0.1:1338"},
		{"socket", map[int]path{2: {"grpc", "address"}, 3: {"grpc", "address"}, 4: server("grpc", "address")}, "/run/other.sock"},
	}
}

// file is a configuration of the version that holds every setting, but with another value than any default.
func file(t *testing.T, version int, skip ...string) string {
	t.Helper()
	tree := map[string]any{"version": int64(version)}
	for _, s := range settings() {
		at, ok := s.at[version]
		if !ok || s.other == nil || slices.Contains(skip, s.name) {
			continue
		}
		table := tree
		for _, key := range at[:len(at)-1] {
			if _, ok := table[key]; !ok {
				table[key] = map[string]any{}
			}
			table, _ = table[key].(map[string]any)
		}
		table[at[len(at)-1]] = s.other
	}
	text, err := toml.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// read decodes a configuration.
func read(t *testing.T, text string) map[string]any {
	t.Helper()
	var tree map[string]any
	if err := toml.Unmarshal([]byte(text), &tree); err != nil {
		t.Fatalf("not TOML: %v\n%s", err, text)
	}
	return tree
}

// value is the value at a path, as JSON; "(none)" without one.
func value(t *testing.T, tree map[string]any, at path) string {
	t.Helper()
	var here any = tree
	for _, key := range at {
		table, ok := here.(map[string]any)
		if !ok {
			return none
		}
		if here, ok = table[key]; !ok {
			return none
		}
	}
	text, err := json.Marshal(here)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const none = "(none)"

// differences are the settings of a dump that are not the defaults of the version, one a line, with its imports.
func differences(t *testing.T, v containerd.Version, dump, defaults string) string {
	t.Helper()
	version := fileVersion[v]
	got, want := read(t, dump), read(t, defaults)
	if number := value(t, got, path{"version"}); number != fmt.Sprint(version) {
		t.Errorf("the dump is of version %s, want %d", number, version)
	}
	// 1.6 and 1.7 list the files that were read, in no order; 2.x those that the files list.
	list, _ := got["imports"].([]any)
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	lines := "imports = " + value(t, got, path{"imports"}) + "\n"
	for _, s := range settings() {
		at, ok := s.at[version]
		if !ok {
			continue
		}
		if now := value(t, got, at); now != value(t, want, at) {
			lines += s.name + " = " + now + "\n"
		}
	}
	return lines
}
