package imagebuilder

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/installer/manifest"
	"github.com/machineadm/machineadm/installer/release"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/tools"
)

const (
	installer   = "../../installer/image-builder"
	plugins     = "usr/libexec/machineadm/"
	sentinel    = "/run/cluster-api/bootstrap-success.complete"
	nodePath    = "/etc/machineadm/node.yaml"
	bootTimeout = 4 * time.Minute
	// stream has a document of each phase: the second needs the identity of a machine.
	stream = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: Sysctl
metadata: {name: tuning}
spec:
  parameters: {net.core.somaxconn: 8191}
---
apiVersion: example.com/v1
kind: Noop
metadata: {name: identity}
spec: {provider: test, touch: [/var/identity]}
`
	script   = `{"kinds": [{"apiVersion": "example.com/v1", "kind": "Noop", "phase": "provisioning"}]}`
	playbook = `- hosts: all
  become: true
  gather_subset: [min]
  tasks:
    - include_role:
        name: machineadm
`
)

// TestLint runs Debian's ansible-lint.
func TestLint(t *testing.T) {
	t.Parallel()
	needs.Tier(t, needs.System)
	require.NoError(t, needs.Record("tree", "installer/image-builder"))
	lint := exec.CommandContext(t.Context(), needs.Tool(t, "ansible-lint"), "--nocolor", "--offline", "--parseable", "roles/machineadm")
	lint.Dir, lint.Env = installer, append(os.Environ(), "HOME="+t.TempDir())
	out, err := lint.CombinedOutput()
	assert.NoError(t, err, "%s", out)
}

// TestRole bakes with Debian's ansible-core, 2.14 and 2.19, and boots a clone.
//
//machineadm:core
func TestRole(t *testing.T) {
	t.Parallel()
	debs := packages(t)
	for _, suite := range nodes.Suites() {
		if suite == nodes.Bookworm && !needs.Everything() {
			continue // the node of TestSources has its ansible-core
		}
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			n := nodes.Boot(t, nodes.Options{
				Suite: suite, Layers: []nodes.Layer{nodes.Ansible},
				Prepare: func(root string) error { return prepare(root, debs) },
			})
			first := play(t, n, fromFiles)
			assert.Regexp(t, `changed=[1-9]\d* +unreachable=0 +failed=0`, first)
			assert.Equal(t, "8191", strings.TrimSpace(n.MustExec(t, "cat", "/proc/sys/net/core/somaxconn").Stdout))
			checkImage(t, n)
			assert.Regexp(t, `changed=0 +unreachable=0 +failed=0`, play(t, n, fromFiles), "the role is not idempotent")
			checkImage(t, n)

			n.MustExec(t, "sh", "-c", "tr -d - </proc/sys/kernel/random/uuid >/etc/machine-id")
			require.NoError(t, n.Reboot(t.Context()))
			firstBoot(t, n)
			refusals(t, n)
		})
	}
}

// standIn takes the place of the program of a release: it installs the one of the package.
const standIn = `#!/bin/sh
set -eu
test "$*" = "install --manifest http://127.0.0.1:8080/manifest.json --key KEY --version v1 --with sysctl-plugin-procfs"
to=/opt/machineadm/bin/machineadm
if test -e $to; then echo "machineadm v1 is already installed in /opt/machineadm"; exit; fi
install -D /usr/bin/machineadm $to
`

// TestSources installs from a server: packages by their digests, and a release.
func TestSources(t *testing.T) {
	t.Parallel()
	debs := packages(t)
	sum := func(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }
	var sums []any
	for _, deb := range debs {
		data, err := os.ReadFile(deb)
		require.NoError(t, err)
		sums = append(sums, sum(data))
	}
	n := nodes.Boot(t, nodes.Options{
		Suite: nodes.Bookworm, Layers: []nodes.Layer{nodes.Ansible},
		Prepare: func(root string) error {
			if err := prepare(root, debs); err != nil {
				return err
			}
			at := filepath.Join(root, "srv", "machineadm-v1-linux-"+runtime.GOARCH)
			return os.WriteFile(at, []byte(standIn), 0o600)
		},
	})
	n.MustExec(t, "systemd-run", "--quiet", "python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory", "/srv", "8080")
	const urls = `{"machineadm_stream": "/srv/node.yaml", "machineadm_package_urls": [
		{"url": "http://127.0.0.1:8080/0.deb", "sha256": "%s"}, {"url": "http://127.0.0.1:8080/1.deb", "sha256": "%s"}]}`
	got := tryPlay(t, n, fmt.Sprintf(urls, sums[0], sum(nil)))
	assert.NotZero(t, got.ExitCode)
	assert.Contains(t, got.Stdout, "The checksum for")
	assert.Empty(t, n.MustExec(t, "sh", "-c", "ls -d /tmp/machineadm-* /usr/bin/machineadm 2>/dev/null || true").Stdout)
	play(t, n, fmt.Sprintf(urls, sums...))
	checkImage(t, n)
	fromRelease := fmt.Sprintf(`{"machineadm_stream": "/srv/node.yaml", "machineadm_release": "http://127.0.0.1:8080",
		"machineadm_version": "v1", "machineadm_key": "KEY", "machineadm_sha256": {"%s": "%s"}, "machineadm_with": ["sysctl-plugin-procfs"]}`, runtime.GOARCH, sum([]byte(standIn)))
	assert.Regexp(t, `changed=[1-9]\d* +unreachable=0 +failed=0`, play(t, n, fromRelease))
	assert.Regexp(t, `changed=0 +unreachable=0 +failed=0`, play(t, n, fromRelease))
}

// TestImageRoot bakes and cleans the file system of a machine that has not booted yet.
func TestImageRoot(t *testing.T) {
	t.Parallel()
	debs := packages(t)
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Trixie, Prepare: func(root string) error {
		if err := prepare(root, debs); err != nil {
			return err
		}
		for _, deb := range debs {
			if out, err := exec.CommandContext(t.Context(), "dpkg-deb", "--extract", deb, root).CombinedOutput(); err != nil {
				return fmt.Errorf("%w\n%s", err, out)
			}
		}
		host := []string{filepath.Join(root, "usr/bin/machineadm"), "--plugin-dir", filepath.Join(root, plugins)}
		for _, argv := range [][]string{
			{"apply", "--root", root, "--phase", "preparation", "--path", filepath.Join(root, nodePath)}, {"clean", "--root", root},
		} {
			argv = append(host[:len(host):len(host)], argv...)
			if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
				return fmt.Errorf("%q: %w\n%s", argv, err, out)
			}
		}
		return nil
	}})
	checkImage(t, n)
	firstBoot(t, n)
}

// prepare writes what the role and the first boot read into the files of a node.
func prepare(root string, debs []string) error {
	for path, content := range map[string]string{
		"srv/play.yml": playbook, "srv/node.yaml": stream, nodePath: stream,
		plugins + "machineadm-noop-plugin-test.script": script,
	} {
		at := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(at, []byte(content), 0o600); err != nil {
			return err
		}
	}
	for i, deb := range debs {
		if err := needs.CopyProgram(filepath.Join(root, "srv", fmt.Sprintf("%d.deb", i)), deb); err != nil {
			return err
		}
	}
	return os.CopyFS(filepath.Join(root, "srv/roles"), os.DirFS(filepath.Join(installer, "roles")))
}

// fromFiles are variables that name the packages among the files of the node.
const fromFiles = "machineadm_stream=/srv/node.yaml machineadm_packages=/srv/0.deb,/srv/1.deb"

// play runs the role on the node as image-builder's playbook does, and returns the output.
func play(t *testing.T, n *nodes.Node, source string) string {
	t.Helper()
	got := tryPlay(t, n, source)
	require.Zero(t, got.ExitCode, "%s\n%s", got.Stdout, got.Stderr)
	return got.Stdout
}

func tryPlay(t *testing.T, n *nodes.Node, source string) nodes.Result {
	t.Helper()
	got, err := n.Exec(t.Context(), "env", "LC_ALL=C.UTF-8", "ANSIBLE_NOCOLOR=1", "ANSIBLE_PIPELINING=1", "ANSIBLE_ROLES_PATH=/srv/roles",
		"ansible-playbook", "-i", "localhost,", "-c", "local", "/srv/play.yml",
		"-e", source) // as image-builder passes ansible_user_vars
	require.NoError(t, err)
	return got
}

// checkImage checks the goss file for packages, and that nothing of the machine is left.
func checkImage(t *testing.T, n *nodes.Node) {
	t.Helper()
	checkImageBy(t, n, "goss-machineadm.yaml")
}

func checkImageBy(t *testing.T, n *nodes.Node, name string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(installer, "goss", name))
	require.NoError(t, err)
	g, err := parse(name, data)
	require.NoError(t, err)
	require.NoError(t, g.check(func(argv ...string) (string, int) {
		got, err := n.Exec(t.Context(), argv...)
		require.NoError(t, err)
		return got.Stdout, got.ExitCode
	}), name)
	choices := n.MustExec(t, "cat", "/etc/machineadm/choices.json").Stdout
	assert.JSONEq(t, `{"Sysctl/tuning":"procfs"}`, choices)
	left := n.MustExec(t, "sh", "-c", "find /var/lib/machineadm /run/machineadm /etc/systemd/system -name '*machineadm*' -o -type f -path '*machineadm*' || true").Stdout
	assert.NotRegexp(t, regexp.MustCompile(`(?m)\.(json|key)$|machine-id|resume`), left)
}

// firstBoot applies the whole stream, as a machine of the image does, and checks that the deferred documents are done.
func firstBoot(t *testing.T, n *nodes.Node) {
	t.Helper()
	n.MustExec(t, "machineadm", "--bootstrap", "--path", nodePath)
	data, err := n.CopyOut(t.Context(), "/run/machineadm/report.json")
	require.NoError(t, err)
	var r report.Report
	require.NoError(t, json.Unmarshal(data, &r))
	require.Equal(t, report.RunSucceeded, r.Outcome, "%+v", r)
	require.Len(t, r.Documents, 2)
	assert.Equal(t, "procfs", r.Documents[0].Provider)
	assert.Equal(t, report.Changed, r.Documents[1].Outcome, "the document of the phase provisioning")
	assert.Equal(t, "8191", strings.TrimSpace(n.MustExec(t, "cat", "/proc/sys/net/core/somaxconn").Stdout))
	n.MustExec(t, "test", "-e", "/var/identity")
	n.MustExec(t, "test", "-s", sentinel)
	reports := strings.Fields(n.MustExec(t, "ls", "/var/lib/machineadm/reports").Stdout)
	assert.Len(t, reports, 1, "a report of the machine that was the image")
}

// refusals cleans the live machine again, with its sentinel, but not while a run waits for its reboot.
func refusals(t *testing.T, n *nodes.Node) {
	t.Helper()
	clean := func(args ...string) nodes.Result {
		got, err := n.Exec(t.Context(), append([]string{"machineadm", "clean"}, args...)...)
		require.NoError(t, err)
		return got
	}
	assert.Contains(t, clean().Stdout, "removed "+sentinel+"\n")
	n.MustExec(t, "sh", "-c", `printf '%s' "$0" >/srv/reboot.yaml && chmod 600 /srv/reboot.yaml && `+
		`machineadm apply --path /srv/reboot.yaml; test $? = 3`,
		strings.Replace(strings.Split(stream, "---\n")[1], "touch: [/var/identity]", "reboot: AfterRun, touch: [/var/again]", 1))
	got := clean()
	assert.Equal(t, report.ExitReboot, got.ExitCode, "%+v", got)
	assert.Contains(t, got.Stderr, "Noop/identity has requested a reboot")
	n.MustExec(t, "test", "-e", "/var/lib/machineadm/reboots.json")
	n.MustExec(t, "test", "-s", "/etc/machineadm/choices.json")

	// A run that resumes at the next boot, as the host keeps it.
	n.MustExec(t, "sh", "-c", `cd /etc/systemd/system && mkdir -p multi-user.target.wants &&
		echo '# Written by machineadm, which removes it when the run has ended.' >machineadm-resume.service &&
		ln -s ../machineadm-resume.service multi-user.target.wants/ &&
		echo '{"version":1,"generation":"g","file":"f","phase":"all","timeoutNanoseconds":1,"stream":"eA=="}' >/var/lib/machineadm/resume.json`)
	got = clean()
	assert.Equal(t, report.ExitReboot, got.ExitCode, "%+v", got)
	assert.Contains(t, got.Stderr, "a run of f waits for its reboot")

	got = clean("--discard-run")
	require.Zero(t, got.ExitCode, "%+v", got)
	for _, path := range []string{
		"/var/lib/machineadm/reports", "/var/lib/machineadm/reboots.json", "/run/machineadm/report.json", "/var/lib/machineadm/resume.json",
		"/etc/systemd/system/machineadm-resume.service", "/etc/systemd/system/multi-user.target.wants/machineadm-resume.service",
	} {
		assert.Contains(t, got.Stdout, "removed "+path+"\n")
	}
	assert.Equal(t, nodes.Result{Stdout: "nothing to remove\n"}, clean())
}

// packages returns the package files that the role installs, in the order of their dependencies, with the programs of this checkout.
func packages(t *testing.T) []string {
	t.Helper()
	needs.Root(t)
	needs.Tool(t, "xz")
	require.NoError(t, needs.Record("tree", "installer/image-builder")) // ansible reads it
	nfpm := tools.For(t, "nfpm")
	dir := t.TempDir()
	r := release.Release{
		Version: "v0.1.0", Time: time.Unix(1767225600, 0), Names: []string{"machineadm", "machineadm-sysctl-plugin-procfs", "machineadm-noop-plugin-test"},
		Binaries: dir, Share: t.TempDir(), Platform: []release.Platform{{OS: "linux", Arch: runtime.GOARCH}}, Kinds: []string{manifest.KindDeb},
		Nfpm: nfpm, Out: filepath.Join(dir, "out"), Quick: true,
	}
	require.NoError(t, tools.Products(t.Context(), filepath.Join(dir, "linux-"+runtime.GOARCH), map[string]string{
		r.Names[0]: "host/cmd/machineadm", r.Names[1]: "plugins/sysctl/procfs", r.Names[2]: "testenv/noop",
	}))
	require.NoError(t, r.Make(t.Context(), t.Output()))
	var debs []string
	for _, name := range []string{"machineadm", "machineadm-plugins"} {
		debs = append(debs, filepath.Join(r.Out, name+"_0.1.0_"+runtime.GOARCH+".deb"))
	}
	return debs
}
