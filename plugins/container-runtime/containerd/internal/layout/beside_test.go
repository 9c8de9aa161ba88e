package layout

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// TestBeside: what other people have configured stays in effect, or is reached by the document.
func TestBeside(t *testing.T) {
	t.Parallel()
	const mirror = `"registries":{"r.test":{"mirrors":[{"url":"https://m.test"}]}}`
	const other = `"registries":{"_default":{"mirrors":[{"url":"https://m.test"}]}}`
	const eks2 = "version = 2\n[plugins.'io.containerd.grpc.v1.cri'.registry]\nconfig_path = '/etc/containerd/certs.d:/etc/docker/certs.d'\n"
	const eks3 = "version = 3\n[plugins.'io.containerd.cri.v1.images'.registry]\nconfig_path = '/etc/containerd/certs.d:/etc/docker/certs.d'\n"
	const nvidia2 = "version = 2\n[plugins.'io.containerd.grpc.v1.cri'.containerd]\ndefault_runtime_name = 'nvidia'\n" +
		"[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.nvidia]\nruntime_type = 'io.containerd.runc.v2'\n" +
		"[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.kata]\nruntime_type = 'io.containerd.kata.v2'\n"
	const nvidia3 = "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia]\nruntime_type = 'io.containerd.runc.v2'\n"
	host := map[string]string{"/etc/docker/certs.d/d.test/hosts.toml": ""}
	path1 := settings.Dotted([]string{"plugins", settings.CRIPlugin, "registry", "config_path"})
	path2 := settings.Dotted([]string{"plugins", settings.ImagesPlugin, "registry", "config_path"})
	old := settings.Dotted([]string{"plugins", settings.ImagesPlugin, "use_local_image_pull"})
	driver1 := func(name string) string {
		return settings.Dotted([]string{"plugins", settings.CRIPlugin, "containerd", "runtimes", name, "options", "SystemdCgroup"})
	}
	driver2 := func(name string) string {
		return settings.Dotted([]string{"plugins", settings.RuntimePlugin, "containerd", "runtimes", name, "options", "SystemdCgroup"})
	}
	v17, v21, v23 := settings.Release{Major: 1, Minor: 7, Patch: 24}, settings.Release{Major: 2, Minor: 1, Patch: 9}, settings.Release{Major: 2, Minor: 3, Patch: 7}
	for name, c := range map[string]struct {
		release settings.Release
		main    string
		files   map[string]string
		spec    string
		want    map[string]any // nil: not set
		warns   []string
		refused string
	}{
		"a list of directories":           {release: v17, main: eks2, spec: `{` + mirror + `}`, want: map[string]any{path1: "/etc/containerd/certs.d:/etc/docker/certs.d"}},
		"another directory":               {release: v17, main: "version = 2\n[plugins.'io.containerd.grpc.v1.cri'.registry]\nconfig_path = '/x'\n", spec: `{` + mirror + `}`, want: map[string]any{path1: "/etc/containerd/certs.d:/x"}},
		"a list with hosts":               {release: v21, main: eks3, files: host, spec: `{` + mirror + `}`, want: map[string]any{path2: "/etc/containerd/certs.d:/etc/docker/certs.d", old: true}},
		"a list without hosts":            {release: v23, main: eks3, spec: `{` + mirror + `}`, want: map[string]any{path2: "/etc/containerd/certs.d", old: nil}},
		"no registries":                   {release: v17, main: eks2, spec: `{"logLevel":"info"}`, want: map[string]any{path1: nil}},
		"a host that would be hidden":     {release: v17, main: eks2, files: host, spec: `{` + other + `}`, refused: "d.test"},
		"a default without hosts besides": {release: v17, main: eks2, spec: `{` + other + `}`, want: map[string]any{path1: "/etc/containerd/certs.d:/etc/docker/certs.d"}},
		"directories that are asked for":  {release: v23, spec: `{"registryDirs":["/a","/b"]}`, want: map[string]any{path2: "/etc/containerd/certs.d:/a:/b", old: true}},
		"a runtime of 1.7":                {release: v17, main: nvidia2, spec: `{"cgroupDriver":"systemd"}`, want: map[string]any{driver1("nvidia"): true, driver1("runc"): true, driver1("kata"): nil}, warns: []string{"nvidia"}},
		"a runtime of 2.3":                {release: v23, main: nvidia3, spec: `{"cgroupDriver":"systemd"}`, want: map[string]any{driver2("nvidia"): true, driver2("runc"): true}, warns: []string{"nvidia"}},
		"a runtime of a drop-in": {
			release: v23, main: "version = 3\nimports = ['conf.d/*.toml']\n", files: map[string]string{"/etc/containerd/conf.d/99-nvidia.toml": nvidia3},
			spec: `{"cgroupDriver":"cgroupfs"}`, want: map[string]any{driver2("nvidia"): false}, warns: []string{"99-nvidia.toml"},
		},
		"a runtime with the driver":     {release: v17, main: nvidia2 + "[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.nvidia.options]\nSystemdCgroup = true\n", spec: `{"cgroupDriver":"systemd"}`, want: map[string]any{driver1("nvidia"): true}},
		"a runtime with one of its own": {release: v17, main: nvidia2, spec: `{"cgroupDriver":"systemd","runtimes":{"nvidia":{"type":"io.containerd.runc.v2","cgroupDriver":"cgroupfs"}}}`, want: map[string]any{driver1("nvidia"): false}},
		"a runtime of a patch":          {release: v23, spec: `{"cgroupDriver":"systemd","providerConfig":{"patches":["plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.x.runtime_type = 'io.containerd.runc.v2'"]}}`, want: map[string]any{driver2("x"): true}},
		"no default runtime of others":  {release: v17, main: nvidia2, spec: `{"defaultRuntime":""}`, want: map[string]any{settings.Dotted([]string{"plugins", settings.CRIPlugin, "containerd", "default_runtime_name"}): "runc"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := machinetest.New(t)
			f.WriteFiles(t, map[string]string{"/etc/containerd/config.toml": c.main})
			f.WriteFiles(t, c.files)
			now, err := Read(f.Machine, "/etc/containerd/config.toml", c.release, nil)
			require.NoError(t, err)
			d, err := Beside(wanted(t, "linux", c.spec), f.Machine, now, c.release)
			if c.refused != "" {
				require.ErrorContains(t, err, c.refused)
				return
			}
			require.NoError(t, err)
			desired, violations := d.Settings(c.release)
			require.Empty(t, violations)
			got := map[string]any{}
			for _, s := range desired {
				got[settings.Dotted(s.Path)] = s.Value
			}
			for path, value := range c.want {
				assert.Equal(t, value, got[path], path)
			}
			require.Len(t, d.Warnings, len(c.warns))
			for i, part := range c.warns {
				assert.Contains(t, d.Warnings[i].Message, part)
			}
		})
	}
}

// TestExpressible: what a document can ask for, with the first release that has it.
func TestExpressible(t *testing.T) {
	t.Parallel()
	d := wanted(t, "linux", `{"registries":{"r.test":{"mirrors":[{"url":"https://mirror","capabilities":["pull","referrers"]}]},"mirror":{"auth":{"username":"u","password":{"value":"c4n4ry"}}}},
		"registryHeaders":{"x-a":{"value":"c4n4ry"}},"runtimes":{"runc":{"baseSpec":{"patch":{"process":{"oomScoreAdj":100}}}}}}`)
	assert.Len(t, d.Unsupported(settings.Release{Major: 2, Minor: 1, Patch: 9}), 1)
	assert.Empty(t, d.Unsupported(settings.Release{Major: 2, Minor: 2, Patch: 0}))
	desired, _ := d.Settings(settings.Release{Major: 2, Minor: 2, Patch: 0})
	got := map[string]any{}
	for _, s := range desired {
		got[settings.Dotted(s.Path)] = s.Value
	}
	assert.Equal(t, []string{"c4n4ry"}, got[settings.Dotted([]string{"plugins", settings.ImagesPlugin, "registry", "headers", "X-A"})])
	assert.Equal(t, "u", got[settings.Dotted([]string{"plugins", settings.ImagesPlugin, "registry", "configs", "mirror", "auth", "username"})])
	text, err := baseSpec([]byte(`{"ociVersion":"1","process":{"cwd":"/","rlimits":[1]},"mounts":[]}`), d.Runtimes[0].Rlimits, map[string]any{
		"process": map[string]any{"oomScoreAdj": 100, "cwd": nil}, "linux": map[string]any{"seccomp": map[string]any{}},
	})
	require.NoError(t, err)
	assert.JSONEq(t, `{"ociVersion":"1","process":{"oomScoreAdj":100,"rlimits":[]},"mounts":[],"linux":{"seccomp":{}}}`, string(text))
}
