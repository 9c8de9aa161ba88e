package promise_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// booted is a node that a stream is tried on.
type booted struct{ *nodes.Node }

const nodeStream = "/root/stream.yaml"

func (b booted) host(t *testing.T, stream, command string) step {
	t.Helper()
	written, err := b.ExecInput(t.Context(), strings.NewReader(stream), "sh", "-c", "umask 077; cat >"+nodeStream)
	require.NoError(t, err)
	require.Zero(t, written.ExitCode, written.Stderr)
	out, err := b.Exec(t.Context(), "machineadm", command, "--path", nodeStream, "-o", "json")
	require.NoError(t, err)
	return newStep(command, out.ExitCode, out.Stdout, out.Stderr)
}

// entries are the paths of /etc, and of what packages have for these kinds. A file stands with its digest.
func (b booted) entries(t *testing.T) map[string]entry {
	t.Helper()
	const dirs = "/etc /usr/lib/systemd/system /usr/lib/sysctl.d"
	out := map[string]entry{}
	for line := range strings.Lines(b.MustExec(t, "sh", "-c", "find "+dirs+` -printf '%p\t%y%m\t%U:%G\t%l\n'`).Stdout) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		e := entry{owner: cells[2] + " " + cells[1], text: cells[3]}
		if strings.HasPrefix(cells[1], "d") {
			e.mode = fs.ModeDir
		}
		out[cells[0]] = e
	}
	for line := range strings.Lines(b.MustExec(t, "sh", "-c", "find "+dirs+" -type f -exec sha256sum {} +").Stdout) {
		digest, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		e := out[name]
		e.text = digest
		out[name] = e
	}
	return out
}

// TestBooted holds streams of the kinds that configure daemons to the promise, on booted machines that are not in order.
// PROMISE_STREAMS is how many, each on a machine of its own.
func TestBooted(t *testing.T) {
	needs.Campaign(t)
	usual, err := needs.Seed(t.Name())
	require.NoError(t, err)
	count, seed := number(t, "PROMISE_STREAMS", 20), number(t, "PROMISE_SEED", usual)
	programs := build(t, t.TempDir())
	for n := range count {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, n)) //nolint:gosec // reproducible
			suite := nodes.Suites()[r.IntN(2)]
			node := nodes.Boot(t, nodes.Options{Suite: suite, Layers: []nodes.Layer{nodes.Containerd}, Prepare: install(programs)})
			script := ""
			for range r.IntN(3) {
				script += trouble(r)
			}
			s := drawForNode(r)
			if script != "" {
				_, err := node.Exec(t.Context(), "sh", "-c", script+"systemctl daemon-reload")
				require.NoError(t, err)
			}
			got := try(t, booted{node}, "", s.text(), func() {})
			t.Log(got.exits(), problems(got.planned))
			if (strings.Contains(script, unstartable) || strings.Contains(script, filled)) && got.applied.exit == report.ExitPrecondition {
				got.faults = restored(got) // no plan starts a daemon, or measures a disk
			}
			for _, fault := range got.faults {
				t.Errorf("stream %d of PROMISE_SEED=%d on %s\n%s\n%s\n%s", n, seed, suite, fault, script, s.text())
			}
		})
	}
}

// What shows only when a daemon is started, and when a file is written.
const unstartable, filled = "ExecStartPre=/bin/false", "head -c 1M /dev/zero"

// restored returns what a failed activation has not restored.
func restored(r *comparison) []string {
	return slices.DeleteFunc(differences(r.before, r.after), func(d string) bool {
		return strings.HasPrefix(d, "/etc/sysctl.d") || strings.HasPrefix(d, "/etc/modules-load.d") // an earlier document
	})
}

// containerPaths are the paths that documents for a node with containerd write. Timesync would wait for servers: testenv/timesync has some.
func containerPaths() []string {
	return []string{
		"etc/sysctl.d/99-machineadm-a.conf", "etc/modules-load.d/machineadm-a.conf", "etc/containerd/config.toml", "etc/containerd/conf.d/zz-machineadm.toml",
		"etc/containerd/certs.d/registry.example.com/hosts.toml", "etc/systemd/system/containerd.service.d/zz-machineadm.conf",
	}
}

// drawForNode is a stream that changes nothing but the node: of the kernel, only its network is its own.
func drawForNode(r *rand.Rand) stream {
	sysctl := document{kind: "Sysctl", name: pick(r, "a", "b"), spec: []string{
		pick(r, "parameters: {net.ipv4.ip_forward: 1}", "parameters: {net.core.somaxconn: 8191, net.ipv4.tcp_fin_timeout: 15}"),
	}}
	runtime := containerDocument(r, distribution{files: map[string]string{"var/lib/dpkg/status": "Package: containerd\n"}})
	switch r.IntN(4) {
	case 0:
		return stream{sysctl, runtime}
	case 1:
		return stream{runtime, sysctl}
	default:
		return stream{runtime}
	}
}

// trouble is a script that puts something out of order.
func trouble(r *rand.Rand) string {
	const unit = "containerd.service"
	c := &scene{}
	switch r.IntN(12) {
	case 0:
		return "systemctl mask " + unit + "\n"
	case 1:
		return "systemctl mask --runtime " + unit + "\n"
	case 2:
		return "systemctl disable --now " + unit + "\n"
	case 3:
		return "systemctl stop " + unit + "\n"
	case 4:
		return "d=/etc/systemd/system/" + unit + ".d; mkdir -p $d; printf '[Service]\\n" + unstartable + "\\n' >$d/site.conf\n"
	case 5:
		return "d=$(dirname /" + pick(r, containerPaths()...) + "); mkdir -p $d; mount --bind $d $d; mount -o remount,ro,bind $d\n"
	case 6:
		return "d=$(dirname /" + pick(r, containerPaths()...) + "); mkdir -p /tmp/d $d; cp -a $d/. /tmp/d; mount -t tmpfs -o size=64k tmpfs $d; cp -a /tmp/d/. $d; " + filled + " >$d/full\n"
	case 7:
		return "cp /usr/lib/systemd/system/" + unit + " /etc/systemd/system/; sed -i '/^\\[Install\\]/,$d' /etc/systemd/system/" + unit + "; systemctl disable " + unit + "\n"
	case 8:
		return "systemctl kill -s KILL " + unit + "\n"
	case 9:
		name, text := strange(r)
		c.do(opFile, name, text)
	default:
		c.damage(r, containerPaths())
	}
	for _, p := range c.steps {
		if p.op != opAttribute && p.path != "etc" && !strings.HasPrefix(p.path, "usr/") {
			return p.line()
		}
	}
	return ""
}

// install puts the programs where packages have them.
func install(programs string) func(root string) error {
	return func(root string) error {
		entries, err := os.ReadDir(programs)
		if err != nil {
			return err
		}
		for _, e := range entries {
			to := "usr/libexec/machineadm/" + e.Name()
			switch {
			case e.Name() == "machineadm":
				to = "usr/bin/machineadm"
			case strings.Contains(e.Name(), "noop"), strings.Contains(e.Name(), "late"), strings.Contains(e.Name(), "exact"):
				continue
			}
			data, err := os.ReadFile(filepath.Join(programs, e.Name()))
			if err != nil {
				return err
			}
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, to)), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(root, to), data, 0o755); err != nil {
				return err
			}
		}
		return nil
	}
}
