package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/containerdtest"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/layout"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings/settingstest"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// loaded is what a file says, with a change.
func loaded(t *testing.T, name string, set map[string]any) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../testdata/present", name))
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := toml.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	for path, value := range set {
		keys := strings.Split(path, "|")
		table := tree
		for _, key := range keys[:len(keys)-1] {
			below, ok := table[key].(map[string]any)
			if !ok {
				below = map[string]any{}
				table[key] = below
			}
			table = below
		}
		table[keys[len(keys)-1]] = value
	}
	return tree
}

func TestComparedConfiguration(t *testing.T) {
	t.Parallel()
	const runtime, images = "plugins|" + settings.RuntimePlugin + "|", "plugins|" + settings.ImagesPlugin + "|"
	all := map[string]any{
		runtime + "containerd|runtimes|runc|options|SystemdCgroup": true,
		images + "pinned_images|sandbox":                           "registry.example.com/pause:3.10",
		images + "snapshotter":                                     "native",
		images + "registry|config_path":                            "/etc/containerd/certs.d",
	}
	but := func(path string, value any) map[string]any {
		changed := map[string]any{path: value}
		for key, old := range all {
			if key != path {
				changed[key] = old
			}
		}
		return changed
	}
	more := []settings.Setting{{Path: []string{"metrics", "address"}, Value: "127.0.0.1:1", Field: "spec.metricsAddress"}}
	const unknown = `level=warning msg="Ignoring unknown key in TOML for plugin" error="strict mode" key="cni typo" plugin=io.containerd.cri.v1.runtime`
	for _, c := range []struct {
		name, dump, said string
		set              map[string]any
		more             []settings.Setting
		want             []string // of the error; none
	}{
		{name: "as wanted", dump: "default-2.1.toml", set: all},
		{name: "as wanted, in version 4", dump: "default-2.3.toml", set: but("plugins|io.containerd.server.v1.metrics|address", "127.0.0.1:1"), more: more},
		{name: "a default", dump: "default-2.1.toml", set: but(images+"snapshotter", "overlayfs"), want: []string{"spec.snapshotter", "another value", "imports later"}},
		{name: "of another type", dump: "default-2.1.toml", set: but(runtime+"containerd|runtimes|runc|options|SystemdCgroup", "true"), want: []string{"spec.cgroupDriver"}},
		{
			name: "left out", dump: "default-2.1.toml", set: all, want: []string{"patches[0]", "which it leaves out"},
			more: []settings.Setting{{Path: []string{"plugins", settings.RuntimePlugin, "no_such_key"}, Value: int64(1), Field: "spec.providerConfig.patches[0]"}},
		},
		{
			name: "not known", dump: "default-2.1.toml", set: all, said: unknown, want: []string{"patches[0]", "which it does not know"},
			more: []settings.Setting{{Path: []string{"plugins", settings.RuntimePlugin, "cni", "typo"}, Value: int64(1), Field: "spec.providerConfig.patches[0]"}},
		},
		{name: "others' unknown key", dump: "default-2.1.toml", set: all, said: unknown},
		{
			name: "a zero that is not printed", dump: "default-2.3.toml", set: all,
			more: []settings.Setting{{Path: []string{"grpc", "tcp_address"}, Value: "", Field: "f"}, {Path: []string{"x"}, Value: []string{}, Field: "f"}},
		},
		{name: "mirrors of an import", dump: "default-2.1.toml", set: but(images+"registry|mirrors|a.test|endpoint", []any{"https://b.test"}), want: []string{"the old way"}},
		{name: "two ways for CNI", dump: "default-2.1.toml", set: but(runtime+"cni|bin_dir", "/one"), want: []string{"bin_dir and bin_dirs"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := settings.Release{Major: 2, Minor: 1, Patch: 9}
			k := Checker{Installation: installed(r), Configuration: layout.Configuration{
				Main: sdk.FileSpec{Path: "/etc/containerd/config.toml"}, Settings: append(settingstest.Core(r), c.more...),
			}}
			err := k.compare(loaded(t, c.dump, c.set), c.said)
			if len(c.want) == 0 && err != nil || len(c.want) > 0 && err == nil {
				t.Fatalf("got %v", err)
			}
			for _, part := range c.want {
				known := pluginv1.AsError(err)
				if known.Code != pluginv1.CodePrecondition || !strings.Contains(known.Message+known.Hint, part) {
					t.Errorf("%q is missing in %v (%s)", part, err, known.Hint)
				}
			}
		})
	}
}

// TestCheckReadsTheProposal: the proposed main file imports the proposed drop-in, not the one of now.
func TestCheckReadsTheProposal(t *testing.T) {
	t.Parallel()
	r := settings.Release{Major: 2, Minor: 1, Patch: 9}
	f := containerdtest.Live(t, "/usr/bin/containerd", "v2.1.9")
	f.WriteFiles(t, map[string]string{
		"/etc/containerd/config.toml":    "version = 3\nimports = ['/etc/containerd/conf.d/*.toml', 'other.toml']\n",
		"/etc/containerd/conf.d/10.toml": "", "/etc/containerd/other.toml": "",
		"/etc/containerd/conf.d/zz-machineadm.toml": "version = 3\n# of an earlier run\n",
		"/main.candidate": "",
	})
	c, err := configured(f.Machine, r, settingstest.Core(r))
	if err != nil {
		t.Fatal(err)
	}
	seen := ""
	f.Commands.OnFunc("containerd --config /main.candidate config dump", func(context.Context, machine.Command) (machine.Result, error) {
		text, err := f.Machine.FS.ReadFile("/main.candidate")
		seen = string(text)
		return machine.Result{ExitCode: 1, Stderr: []byte("containerd: cannot decode field Snapshotter: SECRET")}, err
	})
	k := Checker{Installation: installed(r), Configuration: c}
	err = k.Check(t.Context(), f.Machine, map[string]string{c.Main.Path: "/main.candidate", c.DropIn.Path: "/drop-in.candidate"})
	if want := `imports = ["/etc/containerd/conf.d/10.toml", "/drop-in.candidate", "/etc/containerd/other.toml"]`; !strings.Contains(strings.ReplaceAll(seen, "'", `"`), want) {
		t.Errorf("the daemon was given\n%s\nwant %s", seen, want)
	}
	known := pluginv1.AsError(err)
	if known.Code != pluginv1.CodePrecondition || !strings.Contains(known.Message, "spec.snapshotter") || strings.Contains(known.Message+known.Hint, "SECRET") ||
		!strings.Contains(known.Detail, "SECRET") {
		t.Errorf("got %+v", known)
	}
}
