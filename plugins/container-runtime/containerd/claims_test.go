package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/containerdtest"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// TestClaims: two documents that differ would undo each other in every run. Of two that are equal, none is refused.
func TestClaims(t *testing.T) {
	t.Parallel()
	const registry = `"registries":{"r.test":{"mirrors":[{"url":"https://m.test","headers":{"X":{"value":"c4n4ry"}}}]}}`
	for name, c := range map[string]struct {
		a, b string
		want []string // fields of the conflicts
	}{
		"equal":               {a: `{"cgroupDriver":"systemd",` + registry + `}`, b: `{` + registry + `,"cgroupDriver":"systemd"}`},
		"another provider":    {a: `{"cgroupDriver":"systemd"}`, b: `{"cgroupDriver":"systemd","provider":"containerd"}`},
		"another value":       {a: `{"cgroupDriver":"systemd"}`, b: `{"cgroupDriver":"cgroupfs"}`, want: []string{"spec.cgroupDriver"}},
		"different fields":    {a: `{"cgroupDriver":"systemd"}`, b: `{"snapshotter":"native"}`, want: []string{"spec.cgroupDriver", "spec.snapshotter"}},
		"different secrets":   {a: `{` + registry + `}`, b: `{"registries":{"r.test":{"mirrors":[{"url":"https://m.test","headers":{"X":{"value":"c4n4ry2"}}}]}}}`, want: []string{"spec.registries"}},
		"different files":     {a: `{"proxy":{"http":"http://p:1"}}`, b: `{"proxy":{"http":"http://p:2"}}`, want: []string{"spec.proxy"}},
		"empty, and absent":   {a: `{"logLevel":"info","registries":{},"runtimes":{},"registryHeaders":{},"imports":[],"registryDirs":[]}`, b: `{"logLevel":"info"}`},
		"different providers": {a: `{"providerConfig":{"version":"1.7"},"logLevel":"info"}`, b: `{"logLevel":"info"}`, want: []string{"spec.providerConfig"}},
	} {
		for _, version := range []string{"1.7.24", "v2.3.7", ""} {
			t.Run(name+"/"+version, func(t *testing.T) {
				t.Parallel()
				assert.ElementsMatch(t, c.want, conflicts(claims(t, "a", version, c.a), claims(t, "b", version, c.b)))
			})
		}
	}
}

// TestCgroupDriver: the driver that the document names is claimed. If it names none, the driver in the files of containerd 1.x is assumed;
// the kubelet asks later versions for their driver, so nothing is assumed.
func TestCgroupDriver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ version, spec, want string }{
		"of the document":       {"v2.3.7", `{"cgroupDriver":"systemd"}`, "systemd spec.cgroupDriver"},
		"of its runtime":        {"1.7.24", `{"cgroupDriver":"systemd","runtimes":{"runc":{"cgroupDriver":"cgroupfs"}}}`, "cgroupfs spec.runtimes.runc.cgroupDriver"},
		"before it is found":    {"", `{"cgroupDriver":"systemd"}`, "systemd spec.cgroupDriver"},
		"of containerd 1.x":     {"1.7.24", `{"logLevel":"info"}`, "cgroupfs spec.cgroupDriver assumed"},
		"of a later one":        {"v2.3.7", `{"logLevel":"info"}`, ""},
		"of one that is absent": {"", `{"logLevel":"info"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, got := claims(t, "a", c.version, c.spec), ""
			assert.Equal(t, machine.Claim{ID: "node:container-runtime", Field: "spec.provider", Value: []string{"containerd"}, Assumed: true}, all["node:container-runtime"])
			if claim, ok := all["node:cgroup-driver"]; ok {
				got = claim.Value[0] + " " + claim.Field
				if claim.Assumed {
					got += " assumed"
				}
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// claims are what a document claims on a machine with this containerd; without a version, in an empty image.
func claims(t *testing.T, name, version, spec string) map[string]machine.Claim {
	t.Helper()
	m, _ := machinetest.NewImage(t)
	if version != "" {
		f := containerdtest.Live(t, "/usr/bin/containerd", version)
		f.WriteFiles(t, map[string]string{"/etc/containerd/config.toml": "version = 2\nimports = ['/etc/containerd/conf.d/*.toml']\n"})
		m = f.Machine
	}
	all := map[string]machine.Claim{}
	m.Claims = func(c machine.Claim) { all[c.ID] = c }
	doc := containerdtest.ContainerRuntime(t, spec)
	doc.Metadata.Name = name
	_, err := plan(t.Context(), m, doc)
	if version != "" {
		require.NoError(t, err)
	}
	return all
}

// conflicts are the fields that conflict; without any, the files.
func conflicts(a, b map[string]machine.Claim) []string {
	var fields, files []string
	for id, claim := range a {
		other, both := b[id]
		switch {
		case !both || slices.Equal(claim.Value, other.Value), claim.Assumed, other.Assumed, slices.Contains(fields, claim.Field):
		case claim.Field != "":
			fields = append(fields, claim.Field)
		default:
			files = append(files, id)
		}
	}
	if fields == nil {
		return files
	}
	return fields
}
