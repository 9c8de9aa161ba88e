package crash

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// waitLimit bounds every wait; a run takes well under a second on a quiet machine.
const waitLimit = 4 * time.Minute

const treeStream = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: Sysctl
metadata: {name: kubernetes}
spec: {provider: procfs, profiles: [kubernetes]}
---
apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: Sysctl
metadata: {name: tuning}
spec: {parameters: {net.core.somaxconn: 8191, net.ipv4.tcp_rmem: "4096 131072 6291456"}}
---
apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: Sysctl
metadata: {name: limits}
spec: {parameters: {kernel.panic: 10, vm.max_map_count: 262144}, modules: [nf_conntrack]}
`

// otherStream has no changes in its phase: a run of it only cleans up.
const otherStream = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: Sysctl
metadata: {name: limits}
spec: {parameters: {kernel.panic: 20}}
`

// bench is an image root and the directories of its runs.
type bench struct{ dir, root, state, run, plugins, tmp, stream, other string }

// newBench makes an image with a file to create, to replace, to remove, and one whose mode is to be restored.
func newBench(t *testing.T) *bench {
	t.Helper()
	require.Tier(t, require.System)
	dir, err := os.MkdirTemp(built, "") //nolint:usetesting // the name of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	at := func(name string) string { return filepath.Join(dir, name) }
	b := &bench{dir, at("root"), at("state"), at("run"), at("plugins"), at("tmp"), at("stream.yaml"), at("other.yaml")}
	for _, d := range []string{b.state, b.run, b.plugins, b.tmp, at("root/etc/modules-load.d"), at("root/srv/sysctl.d")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{
		b.stream:                               treeStream,
		b.other:                                otherStream,
		at("root/etc/hosts"):                   "127.0.0.1 localhost\n",
		at("root/etc/foreign"):                 "# not ours\n",
		at("root/srv/sysctl.d/50-vendor.conf"): "kernel.panic = 5\n",
		at("root/srv/sysctl.d/99-machineadm-limits.conf"):        "kernel.panic = 0\n",
		at("root/etc/modules-load.d/machineadm-tuning.conf"):     "overlay\n",
		at("root/etc/modules-load.d/machineadm-kubernetes.conf"): "an earlier one\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A link inside the image, in the path of a written file. A plugin writes nothing below /usr.
	for link, target := range map[string]string{"root/etc/sysctl.d": "/srv/sysctl.d", "root/etc/mtab": "/proc/self/mounts"} {
		if err := os.Symlink(target, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(built, pluginBinary), filepath.Join(b.plugins, pluginBinary)); err != nil {
		t.Fatal(err)
	}
	return b
}

// referring is a bench whose stream names a file that holds the stream, encrypted.
func referring(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	key, sealed := filepath.Join(b.dir, "key"), filepath.Join(b.dir, "sealed.yaml")
	outer, text, passphrase, err := references(key, sealed, treeStream)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(
		os.WriteFile(key, []byte(passphrase), 0o600), os.WriteFile(sealed, []byte(text), 0o600), os.WriteFile(b.stream, []byte(outer), 0o600),
		os.Link(filepath.Join(built, sourcePlugin), filepath.Join(b.plugins, sourcePlugin)),
		os.Link(filepath.Join(built, keyPlugin), filepath.Join(b.plugins, keyPlugin)),
	)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// linger replaces the plugin by a script that starts a process and becomes the plugin. The process has the mark in its
// arguments, and ends by itself.
func (b *bench) linger(t *testing.T) {
	t.Helper()
	script := "#!/bin/sh\n" +
		`sh -c "sleep 2; :" "` + b.plugins + `" </dev/null >/dev/null 2>&1 &` + "\n" +
		`exec "` + filepath.Join(built, pluginBinary) + `"` + "\n"
	path := filepath.Join(b.plugins, pluginBinary)
	err := os.Remove(path) // a link to the shared binary
	if err == nil {
		err = require.WriteProgram(path, []byte(script))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// outcome is the result of an apply, with the processes of an earlier run that were alive at its first change.
type outcome struct {
	code      int
	words     string
	survivors []process
}

// running is an apply in progress. One that has ended has only an outcome.
type running struct {
	host  int
	ended chan struct{}
	took  time.Duration
	outcome
}

func (b *bench) start(t *testing.T, more ...string) *running {
	t.Helper()
	return b.startAs(t, nil, []string{filepath.Join(built, hostBinary)}, more...)
}

// startTrapped starts a run whose calls a trap watches.
func (b *bench) startTrapped(t *testing.T, a aim) (*running, *trap) {
	t.Helper()
	socket := filepath.Join(b.dir, "trap")
	p := setTrap(t, socket, a)
	return b.startAs(t, []string{trapVariable + "=" + socket}, []string{"/proc/self/exe", filepath.Join(built, hostBinary)}), p
}

// startAs starts a run by a program, with more variables and more arguments.
func (b *bench) startAs(t *testing.T, variables, program []string, more ...string) *running {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), waitLimit)
	arguments := slices.Concat(program[1:], []string{
		"apply", "--output", "json", "--path", b.stream,
		"--root", b.root, "--state-dir", b.state, "--run-dir", b.run, "--plugin-dir", b.plugins,
	}, more)
	c := exec.CommandContext(ctx, program[0], arguments...)
	c.Env = append(variables, "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR="+b.tmp)
	c.WaitDelay = waitLimit
	var words bytes.Buffer
	c.Stderr = &words
	events, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	r, began := &running{host: c.Process.Pid, ended: make(chan struct{})}, time.Now()
	go func() {
		defer close(r.ended)
		defer cancel()
		for lines, changes := bufio.NewScanner(events), 0; lines.Scan(); {
			var event struct{ Type string }
			if err := json.Unmarshal(lines.Bytes(), &event); err == nil && event.Type == "change-started" {
				if changes++; changes == 1 {
					r.survivors = marked(processes(t), b.plugins, r.host)
				}
			}
		}
		err := c.Wait()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Errorf("wait: %v", err)
		}
		r.took = time.Since(began)
		r.code, r.words = c.ProcessState.ExitCode(), words.String()
	}()
	return r
}

func (b *bench) await(t *testing.T, ids []string) {
	t.Helper()
	for _, id := range ids {
		awaitEnd(t, id)
	}
}

// settled checks that the last run succeeded and that the tree is that of an undisturbed one.
func (b *bench) settled(t *testing.T, o outcome, want string) {
	t.Helper()
	if o.code != report.ExitOK {
		diverged(t, "exit %d\n%s", o.code, o.words)
	}
	if len(o.survivors) > 0 {
		left(t, "processes of the killed run were alive when the rerun began its first change: %v", o.survivors)
	}
	if d := machinetest.Diff(want, machinetest.Tree(t, b.root)); d != "" {
		diverged(t, "the tree differs from that of an undisturbed run:\n%s", d)
	}
	b.clean(t)
	if _, err := os.Lstat(filepath.Join(b.state, "resolved")); err == nil {
		left(t, "what was resolved is still there")
	}
	r, err := b.report()
	if err == nil {
		err = checkReport(r, o.code)
	}
	if err != nil {
		diverged(t, "%v", err)
	}
}

// clean checks that the leftovers are gone that a run of any stream removes after a killed one.
func (b *bench) clean(t *testing.T) {
	t.Helper()
	for _, p := range marked(processes(t), b.plugins, 0) {
		left(t, "lives after the run (killed now: %t): %v", kill(t, p), p)
	}
	found, err := leftovers(b.root, b.state, b.run, b.tmp)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range found {
		left(t, "%s", l)
	}
}

func (b *bench) report() (report.Report, error) {
	data, err := os.ReadFile(filepath.Join(b.run, "report.json"))
	if err != nil {
		return report.Report{}, err
	}
	return parseReport(data)
}
