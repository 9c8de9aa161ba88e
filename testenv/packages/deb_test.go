package packages

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/installer/manifest"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const (
	sentinel = "/run/cluster-api/bootstrap-success.complete"
	libexec  = "/usr/libexec/machineadm/"
	stateDir = "/var/lib/machineadm"
	waiting  = stateDir + "/resume.json"
	sysctl   = `---
apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: Sysctl
metadata: {name: tuning}
spec: {parameters: {net.core.somaxconn: 8191}}
`
)

func noop(name, spec string) string {
	return "---\napiVersion: example.com/v1\nkind: Noop\nmetadata: {name: " + name + "}\nspec: {provider: test, " + spec + "}\n"
}

// node is a booted node with the packages of two releases in /srv.
type node struct{ *nodes.Node }

// bootWith boots a node, and copies the artifacts of two releases to /srv.
func bootWith(t testing.TB, kind string, o nodes.Options) node {
	t.Helper()
	dirs := []string{releaseOf(t, oldVersion, kind), releaseOf(t, newVersion, kind)}
	n := node{nodes.Boot(t, o)}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		for _, file := range files {
			if strings.Contains(file, conformance) || strings.Contains(file, manifest.FileName) {
				continue
			}
			require.NoError(t, n.CopyIn(t.Context(), file, "/srv/"+filepath.Base(file), 0o644))
		}
	}
	return n
}

// sh runs a script, which must succeed.
func (n node) sh(t testing.TB, script string) string {
	t.Helper()
	return strings.TrimSpace(n.MustExec(t, "sh", "-ec", script).Stdout)
}

func (n node) put(t *testing.T, at, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, []byte(text), 0o600)
	require.NoError(t, n.CopyIn(t.Context(), file, at, 0o600))
}

func (n node) exists(t *testing.T, path string) bool {
	t.Helper()
	r, err := n.Exec(t.Context(), "test", "-e", path)
	require.NoError(t, err)
	return r.ExitCode == 0
}

func (n node) apt(t *testing.T, arguments ...string) {
	t.Helper()
	n.MustExec(t, append([]string{"env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "--yes", "--quiet", "--no-install-recommends"}, arguments...)...)
}

func (n node) report(t *testing.T) report.Report {
	t.Helper()
	var r report.Report
	require.NoError(t, json.Unmarshal([]byte(n.sh(t, "cat /run/machineadm/report.json")), &r))
	return r
}

// packages are all that a node can have.
func packages() []string {
	return []string{"machineadm", "machineadm-plugins", "machineadm-remote", "machineadm-aws", "machineadm-google", "machineadm-azure"}
}

func debs(version string) []string {
	var files []string
	for _, name := range packages() {
		files = append(files, "/srv/"+name+"_"+version+"_amd64.deb")
	}
	return files
}

// TestDeb follows a node from the first installation to the purge. Nothing asks another machine.
//
//machineadm:core trixie
func TestDeb(t *testing.T) {
	t.Parallel()
	for _, suite := range append(nodes.Suites(), nodes.Noble) {
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			network := nodes.NewNetwork(t, "node", nodes.Gateway)
			n := bootWith(t, manifest.KindDeb, nodes.Options{
				Suite: suite, Network: network, Layers: nodes.EgressLayers(suite), Prepare: nodes.CountEgress(network),
			})
			n.apt(t, append([]string{"install"}, debs(oldDeb)...)...)
			assert.Empty(t, n.Egress(t), "the installation")
			fresh(t, n)
			assert.Empty(t, n.Egress(t), "the first boot")
			keepsWaitingRun(t, n, func() { n.apt(t, "install", debs(newDeb)[0]) }) // with the plugins of the release before
			assert.Equal(t, newDeb, n.sh(t, "dpkg-query -W -f '${Version}' machineadm"))
			n.apt(t, append([]string{"install"}, debs(newDeb)[1:]...)...)
			n.apt(t, "install", "--allow-downgrades", debs(oldDeb)[0])
			n.sh(t, "machineadm plan --path /etc/machineadm/node.yaml") // with the plugins of the release after
			n.apt(t, append([]string{"install", "--allow-downgrades"}, debs(oldDeb)[1:]...)...)
			assert.Equal(t, "procfs", n.sh(t, `sed -n 's/.*"Sysctl\/tuning": "\(.*\)".*/\1/p' `+stateDir+"/choices.json"))
			n.MustExec(t, "dpkg-reconfigure", "machineadm") // scripts can be repeated

			n.apt(t, append([]string{"remove"}, packages()...)...)
			for path, there := range map[string]bool{
				"/usr/bin/machineadm": false, libexec: false, stateDir + "/choices.json": true,
				"/etc/systemd/system/multi-user.target.wants/machineadm-firstboot.service": false,
			} {
				assert.Equal(t, there, n.exists(t, path), "after the removal: %s", path)
			}
			n.apt(t, "purge", "machineadm", "machineadm-plugins")
			assert.False(t, n.exists(t, stateDir), "after the purge")
			assert.True(t, n.exists(t, "/etc/machineadm/node.yaml"), "a purge removes the operator's file")
			n.MustExec(t, "dpkg", "--purge", "machineadm")
			assert.Empty(t, n.Egress(t), "upgrade, downgrade and removal")
		})
	}
}

// fresh checks a first installation: nothing ran, the command finds the plugins, the unit of the first boot waits for its
// operator and its file.
func fresh(t *testing.T, n node) {
	t.Helper()
	assert.False(t, n.exists(t, stateDir), "the installation started a run")
	assert.Equal(t, "multi-user.target", n.sh(t, "systemctl show -P WantedBy machineadm-resume.service"))
	assert.Equal(t, "disabled", n.sh(t, "systemctl is-enabled machineadm-firstboot.service || true"))
	assert.Equal(t, "inactive\ninactive", n.sh(t, "systemctl is-active machineadm-resume.service machineadm-firstboot.service || true"))
	n.sh(t, "systemd-analyze verify --man=no machineadm-resume.service machineadm-firstboot.service")
	const before = "systemctl show -P Before machineadm-firstboot.service"
	assert.Equal(t, "shutdown.target", n.sh(t, before), "a service waits for the first boot") // systemd adds this one
	n.sh(t, "systemctl preset machineadm-firstboot.service")
	assert.Equal(t, "disabled", n.sh(t, "systemctl is-enabled machineadm-firstboot.service || true"))
	n.put(t, "/etc/machineadm/node.yaml", sysctl)
	got, err := n.Exec(t.Context(), "machineadm", "plan", "--path", "/etc/machineadm/node.yaml")
	require.NoError(t, err)
	assert.Equal(t, report.ExitDiffers, got.ExitCode, got.Stderr)

	n.sh(t, "systemctl enable machineadm-firstboot.service")
	require.NoError(t, n.Reboot(t.Context()))
	assert.ElementsMatch(t, []string{"multi-user.target", "shutdown.target"}, strings.Fields(n.sh(t, before)), "a service waits for the first boot")
	assert.True(t, n.exists(t, sentinel), n.sh(t, "journalctl --no-pager -u machineadm-firstboot"))
	assert.Equal(t, "8191", n.sh(t, "cat /proc/sys/net/core/somaxconn"))
}

// keepsWaitingRun replaces the packages while a run waits for its reboot, which the new ones then resume.
func keepsWaitingRun(t *testing.T, n node, upgrade func()) {
	t.Helper()
	n.put(t, "/run/node.yaml", sysctl+noop("before", "touch: [/var/before], reboot: BeforeNext")+noop("after", "touch: [/var/after]"))
	n.sh(t, "systemctl mask --runtime reboot.target systemd-reboot.service")
	n.sh(t, "machineadm apply --reboot --path /run/node.yaml || true")
	require.True(t, n.exists(t, waiting), n.sh(t, "machineadm status || true"))
	before := n.sh(t, "ls "+stateDir+"/reports")
	upgrade()
	assert.Equal(t, before, n.sh(t, "ls "+stateDir+"/reports"), "the upgrade started a run")
	require.True(t, n.exists(t, waiting))
	assert.Equal(t, "enabled", n.sh(t, "systemctl is-enabled machineadm-firstboot.service"), "the upgrade disabled a unit")
	assert.False(t, n.exists(t, "/etc/systemd/system/machineadm-resume.service"), "the unit of the package is not used")
	n.sh(t, "systemctl unmask --runtime reboot.target systemd-reboot.service; systemctl disable machineadm-firstboot.service")
	require.NoError(t, n.Reboot(t.Context()))
	assert.True(t, n.exists(t, "/var/after"), n.sh(t, "journalctl --no-pager -u machineadm-resume"))
	assert.False(t, n.exists(t, waiting))
	n.sh(t, "systemctl enable machineadm-firstboot.service")
}

// TestUpgradeDuringARun replaces host and plugins between two documents: the run ends with the programs that it began with.
func TestUpgradeDuringARun(t *testing.T) {
	t.Parallel()
	n := bootWith(t, manifest.KindDeb, nodes.Options{Suite: nodes.Trixie})
	n.apt(t, append([]string{"install"}, debs(oldDeb)...)...)
	old := strings.Fields(n.sh(t, "sha256sum "+libexec+"* | cut -d ' ' -f 1"))
	n.put(t, "/run/node.yaml", noop("slow", "touch: [/var/slow], apply: retry, applyUntil: /run/go")+sysctl+noop("last", "touch: [/var/last]"))
	n.sh(t, "systemd-run --quiet --unit run machineadm apply --path /run/node.yaml")
	require.Eventually(t, func() bool {
		return strings.Contains(n.sh(t, "journalctl --no-pager --unit run"), "noop says retry")
	}, time.Minute, 200*time.Millisecond)

	n.apt(t, append([]string{"install"}, debs(newDeb)...)...)
	assert.Equal(t, "active", n.sh(t, "systemctl is-active run"), "the upgrade ended the run")
	assert.NotEqual(t, old, strings.Fields(n.sh(t, "sha256sum "+libexec+"* | cut -d ' ' -f 1")))
	n.apt(t, append([]string{"remove"}, packages()...)...)
	got, err := n.Exec(t.Context(), "apt-get", "--yes", "purge", "machineadm")
	require.NoError(t, err)
	assert.NotZero(t, got.ExitCode, "the state of an active run was purged")
	assert.Contains(t, got.Stdout+got.Stderr, "a run is active and writes its state")
	n.sh(t, "touch /run/go")
	require.Eventually(t, func() bool { return n.sh(t, "systemctl is-active run || true") != "active" }, time.Minute, 200*time.Millisecond)
	r := n.report(t)
	for _, d := range r.Documents {
		if d.Plugin.SHA256 != "" {
			assert.Contains(t, old, d.Plugin.SHA256, "%s: a plugin of the other release", d.Name)
		}
	}
	assert.Equal(t, report.RunSucceeded, r.Outcome, "%+v", r.Errors)
	n.apt(t, "purge", "machineadm")
	assert.False(t, n.exists(t, stateDir))
}

func TestLintian(t *testing.T) {
	t.Parallel()
	lintian := needs.Tool(t, "lintian")
	files, err := filepath.Glob(filepath.Join(releaseOf(t, oldVersion, manifest.KindDeb), "*.deb"))
	require.NoError(t, err)
	require.Len(t, files, len(packages())+1, "and the conformance kit")
	cmd := exec.CommandContext(t.Context(), lintian, append([]string{"--fail-on", "error", "--allow-root"}, files...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.NotContains(t, string(out), "E: ", "%s", out)
}
