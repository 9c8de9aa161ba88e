package promise_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
)

// mixed is a stream of Sysctl or Timesync documents and scripted ones, on an image. No model says what these kinds do; the
// commands have to agree with each other.
type mixed struct {
	*machine
	text   string
	before map[string]string
	fails  bool // a document is scripted to fail in the middle
	// elsewhere: a document is for other machines; validate reads it, and plan does not.
	elsewhere bool
}

func newMixed(t *testing.T, r *rand.Rand, m *machine) *mixed {
	t.Helper()
	c := &mixed{machine: m}
	m.write(t, "etc/os-release", "ID=debian\nVERSION_ID=13\n")
	for _, name := range []string{"srv/a", "srv/b", "srv/c"} {
		if chance(r, 3) {
			m.write(t, name, pick(r, name, "foreign"))
		}
	}
	for _, name := range []string{"etc/sysctl.d/10-site.conf", "etc/sysctl.d/zz-site.conf", "etc/sysctl.conf", "etc/sysctl.d/99-machineadm-s0.conf", "etc/modules-load.d/machineadm-s1.conf"} {
		if chance(r, 5) {
			m.write(t, name, pick(r, "", "# nothing\n", "kernel.panic = 1\n", "vm.swappiness=0\n", "-kernel.panic\n"))
		}
	}
	if chance(r, 20) {
		require.NoError(t, os.MkdirAll(filepath.Join(m.root, "etc/sysctl.d"), 0o755))
		require.NoError(t, os.Symlink("/dev/null", filepath.Join(m.root, "etc/sysctl.d/99-machineadm-s2.conf")))
	}
	kind := c.sysctl
	if chance(r, 3) { // one kind in a stream, because each needs one plugin more, and time goes into their start
		kind = c.timesync
		c.timeDaemons(t, r)
	}
	for i := range 1 + r.IntN(4) {
		if chance(r, 3) {
			c.noop(r, i)
		} else {
			kind(r, i)
		}
	}
	c.before = m.tree(t)
	return c
}

func (c *mixed) document(r *rand.Rand, apiVersion, kind, name string, spec []string) {
	when := ""
	if chance(r, 10) {
		when = ", when: " + pick(r, "{os: [linux]}", windowsOnly, debianOnly, fedoraOnly)
		c.elsewhere = c.elsewhere || strings.Contains(when, "windows") || strings.Contains(when, "fedora")
	}
	c.text += fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {name: %s%s}\nspec: {%s}\n", apiVersion, kind, name, when, strings.Join(spec, ", "))
}

// noop is a document of the scripted plugin. The content of a file is its name, so that no two documents disagree.
func (c *mixed) noop(r *rand.Rand, i int) {
	file := pick(r, "srv/a", "srv/b", "srv/c", "srv/d")
	spec := []string{"provider: test", fmt.Sprintf("touch: [%s], content: %s", file, file)}
	switch r.IntN(8) {
	case 0, 1:
		spec = append(spec, "plan: precondition")
		if !chance(r, 3) {
			spec = append(spec, "planUntil: "+pick(r, "srv/a", "srv/b", "srv/d"))
		}
	case 2:
		spec, c.fails = append(spec, "apply: fail"), true
	}
	c.document(r, "example.com/v1", noop, fmt.Sprintf("n%d", i), spec)
}

func (c *mixed) sysctl(r *rand.Rand, i int) {
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

// hold runs the commands, checks what has to agree, and returns the exit codes.
func (c *mixed) hold(t *testing.T, r *rand.Rand) string {
	t.Helper()
	validated := c.host(t, c.text, "validate")
	planned := c.host(t, c.text, "plan")
	assert.Equal(t, c.before, c.tree(t), "a plan changes nothing")
	applied := c.host(t, c.text, "apply")
	after := c.changed(t)
	again := c.host(t, c.text, "plan")
	all := show([]int{validated.exit, planned.exit, applied.exit, again.exit})
	show := func(what string) string { return what + ": " + all + "\n" + validated.output + applied.output }
	if planned.exit == report.ExitUsage {
		assert.Equal(t, report.ExitUsage, validated.exit, show("what plan refuses as wrong, validate refuses"))
	}
	if validated.exit != report.ExitOK && !c.elsewhere {
		assert.NotContains(t, []int{report.ExitOK, report.ExitDiffers}, planned.exit, show("what validate refuses, plan refuses"))
	}
	switch planned.exit {
	case report.ExitOK:
		assert.Equal(t, report.ExitOK, applied.exit, show("nothing to do"))
		assert.Empty(t, after, show("an apply with nothing to do changes nothing"))
	case report.ExitDiffers:
		if len(planned.pending) == 0 && !c.fails {
			assert.Equal(t, report.ExitOK, applied.exit, show("a plan without Pending comes true"))
			c.comeTrue(t, planned, show)
		}
	default:
		assert.Equal(t, planned.exit, applied.exit, show("plan and apply refuse alike"))
		assert.Equal(t, c.before, c.tree(t), show("what is refused changes nothing"))
	}
	if applied.exit == report.ExitOK {
		assert.Equal(t, report.ExitOK, again.exit, show("what was applied is converged"))
		if chance(r, 3) {
			assert.Equal(t, report.ExitOK, c.host(t, c.text, "apply").exit, show("again"))
			assert.Equal(t, after, c.changed(t), show("a second apply changes nothing"))
		}
	}
	return all
}

// changed is what an apply has changed in the image, besides the choices of providers: of documents of the stream, and
// all that the host may leave in /etc/machineadm.
func (c *mixed) changed(t *testing.T) map[string]string {
	t.Helper()
	after := c.tree(t)
	if kept, there := after["/"+choices]; there {
		for choice := range strings.FieldsSeq(strings.Trim(kept, "map[]")) {
			document, provider, _ := strings.Cut(choice, ":")
			kind, name, _ := strings.Cut(document, "/")
			assert.Contains(t, c.text, fmt.Sprintf("kind: %s\nmetadata: {name: %s", kind, name))
			assert.Contains(t, map[string][]string{noop: {generic}, "Sysctl": {"procfs"}, "Timesync": {"chronyd", "ntpd", "systemd"}}[kind], provider)
		}
		delete(after, "/"+choices)
		delete(after, "/etc/machineadm")
	}
	maps.DeleteFunc(after, func(name, content string) bool {
		before, there := c.before[name]
		return there && before == content
	})
	for name := range after {
		assert.NotContains(t, name, "machineadm/", "the host leaves nothing else of its own")
	}
	return after
}

// comeTrue compares the planned changes with those of the report.
func (c *mixed) comeTrue(t *testing.T, planned step, show func(string) string) {
	t.Helper()
	made := map[string]bool{}
	for _, d := range c.report(t).Documents {
		for _, change := range d.Changes {
			made[change.ID] = true
			assert.Contains(t, planned.planned[d.Kind+"/"+d.Name], change.ID, show("every change was planned"))
		}
	}
	for document, ids := range planned.planned {
		for _, id := range ids { // by another document, where two own one thing
			assert.True(t, made[id], show("every planned change is made or left for first boot: "+document+" "+id))
		}
	}
}
