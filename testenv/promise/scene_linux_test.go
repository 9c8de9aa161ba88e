package promise_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// scene is one stream and one image.
type scene struct {
	plugins, dir, root, stream string

	text   string
	before map[string]string
	fails  bool // a document is scripted to fail in the middle
	// elsewhere: a document is for other machines; validate reads it, and plan does not.
	elsewhere bool
}

func newCase(t *testing.T, plugins string, r *rand.Rand) *scene {
	t.Helper()
	dir, err := os.MkdirTemp("", "promise") //nolint:usetesting // removed after each stream, of which there are thousands
	require.NoError(t, err)
	c := &scene{plugins: plugins, dir: dir, root: filepath.Join(dir, "root"), stream: filepath.Join(dir, "stream.yaml")}
	c.write(t, "etc/os-release", "ID=debian\nVERSION_ID=13\n")
	for _, name := range []string{"srv/a", "srv/b", "srv/c"} {
		if chance(r, 3) {
			c.write(t, name, pick(r, name, "foreign"))
		}
	}
	for _, name := range []string{"etc/sysctl.d/10-site.conf", "etc/sysctl.d/zz-site.conf", "etc/sysctl.conf", "etc/sysctl.d/99-machineadm-s0.conf", "etc/modules-load.d/machineadm-s1.conf"} {
		if chance(r, 5) {
			c.write(t, name, pick(r, "", "# nothing\n", "kernel.panic = 1\n", "vm.swappiness=0\n", "-kernel.panic\n"))
		}
	}
	if chance(r, 20) {
		require.NoError(t, os.MkdirAll(filepath.Join(c.root, "etc/sysctl.d"), 0o755))
		require.NoError(t, os.Symlink("/dev/null", filepath.Join(c.root, "etc/sysctl.d/99-machineadm-s2.conf")))
	}
	for i := range 1 + r.IntN(5) {
		if chance(r, 2) {
			c.noop(r, i)
		} else {
			c.sysctl(r, i)
		}
	}
	require.NoError(t, os.WriteFile(c.stream, []byte(c.text), 0o600))
	c.before = c.tree(t)
	return c
}

func (c *scene) write(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(c.root, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644)) //nolint:gosec // a file of an image
}

func (c *scene) document(r *rand.Rand, apiVersion, kind, name string, spec []string) {
	when := ""
	if chance(r, 10) {
		when = ", when: " + pick(r, "{os: [linux]}", "{os: [windows]}", "{distributions: [debian]}", "{distributions: [fedora]}", "{os: [linx]}")
		c.elsewhere = c.elsewhere || strings.Contains(when, "windows") || strings.Contains(when, "fedora")
	}
	c.text += fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {name: %s%s}\nspec: {%s}\n", apiVersion, kind, name, when, strings.Join(spec, ", "))
}

// noop is a document of the scripted plugin. What a file shall hold is its name, so that no two documents disagree.
func (c *scene) noop(r *rand.Rand, i int) {
	file := pick(r, "srv/a", "srv/b", "srv/c", "srv/d")
	spec := []string{"provider: test", fmt.Sprintf("touch: [%s], content: %s", file, file)}
	switch r.IntN(10) {
	case 0:
		spec = append(spec, "live: true")
	case 1:
		spec = append(spec, "plan: "+pick(r, "invalid", "unsupported", "internal"), "field: spec.touch")
	case 2, 3:
		spec = append(spec, "plan: precondition")
		if !chance(r, 3) {
			spec = append(spec, "planUntil: "+pick(r, "srv/a", "srv/b", "srv/d"))
		}
	case 4:
		spec, c.fails = append(spec, "apply: fail"), true
	}
	c.document(r, "example.com/v1", "Noop", fmt.Sprintf("n%d", i), spec)
}

func (c *scene) sysctl(r *rand.Rand, i int) {
	var parameters []string
	for _, key := range []string{"kernel.panic", "vm.swappiness", "net/ipv4/ip_forward"} {
		if chance(r, 2) {
			parameters = append(parameters, fmt.Sprintf("%s: %s", key, pick(r, "1", "1", "1", "1", "1", "0")))
		}
	}
	if chance(r, 30) {
		parameters = append(parameters, pick(r, "kernel..panic: 1", "vm: 1", "vm.x: true"))
	}
	spec := []string{"parameters: {" + strings.Join(parameters, ", ") + "}"}
	if chance(r, 2) {
		spec = append(spec, "provider: procfs")
	}
	if chance(r, 3) || len(parameters) == 0 {
		spec = append(spec, "modules: ["+pick(r, "overlay", "br_netfilter", "br-netfilter, overlay")+"]")
	}
	if chance(r, 30) {
		spec = append(spec, "unknown: 1")
	}
	c.document(r, "machineadm.cluster.x-k8s.io/v1alpha1", "Sysctl", fmt.Sprintf("s%d", i), spec)
}

func chance(r *rand.Rand, oneIn int) bool { return r.IntN(oneIn) == 0 }

func pick(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }
