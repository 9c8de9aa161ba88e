package crash

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const (
	nodeFile  = "/etc/machineadm/node.yaml"
	otherFile = "/etc/machineadm/other.yaml"
)

// nodeStream sets parameters of the node's network namespace, which ends with the node.
const nodeStream = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
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
metadata: {name: ports}
spec: {parameters: {net.ipv4.ip_local_port_range: "20000 60000", net.ipv4.tcp_fin_timeout: 15}}
`

// machine is a node of the campaign. mark is a directory that only its processes name.
type machine struct {
	*nodes.Node
	mark   string
	trap   string // the name of mark from outside, short enough for a socket
	stream string // the file that is applied
	reset  string // a script that restores the state before the stream
	values string // a script that prints the state, see look
}

// bootMachine boots a node with plugins beside that of otherStream, and with streams, of which nodeFile is applied.
func bootMachine(t *testing.T, o nodes.Options, streams map[string]string, plugins ...string) *machine {
	dir, err := os.MkdirTemp(built, "") //nolint:usetesting // the name of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{mark: "/usr/libexec/" + filepath.Base(built), trap: filepath.Join(dir, "node"), stream: nodeFile}
	o.Prepare = nodes.InOrder(o.Prepare, func(root string) error {
		if err := os.Symlink(filepath.Join(root, m.mark), m.trap); err != nil {
			return err
		}
		self, err := os.ReadFile("/proc/self/exe")
		if err != nil {
			return err
		}
		if err := install(root, m.mark+"/trapped", self, 0o755); err != nil {
			return err
		}
		programs := map[string]string{hostBinary: "/usr/bin/" + hostBinary}
		for _, plugin := range append(plugins, pluginBinary) {
			programs[plugin] = m.mark + "/" + plugin
		}
		for from, to := range programs {
			data, err := os.ReadFile(filepath.Join(built, from))
			if err != nil {
				return err
			}
			if err := install(root, to, data, 0o755); err != nil {
				return err
			}
		}
		for path, text := range streams {
			if err := install(root, path, []byte(text), 0o600); err != nil {
				return err
			}
		}
		return nil
	})
	m.Node = nodes.Boot(t, o)
	return m
}

// bootSysctl boots the node of parameters, which reset restores to the values of the first boot. The files are further ones, such as
// another stream for nodeFile.
func bootSysctl(t *testing.T, files map[string]string, plugins ...string) *machine {
	streams := map[string]string{nodeFile: nodeStream, otherFile: otherStream}
	maps.Copy(streams, files)
	m := bootMachine(t, nodes.Options{Suite: nodes.Trixie}, streams, plugins...)
	m.values = parameters
	m.reset = "set -eu\nrm -f /etc/sysctl.d/99-machineadm-* /etc/modules-load.d/machineadm-*\n"
	for line := range strings.Lines(m.look(t).state) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			m.reset += fmt.Sprintf("echo '%s' >/proc/sys/%s\n", value, key)
		}
	}
	return m
}

func install(root, path string, data []byte, mode os.FileMode) error {
	at := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	return os.WriteFile(at, data, mode)
}

func (m *machine) look(t *testing.T) observation {
	t.Helper()
	return parseObservation(m.MustExec(t, "sh", "-c", m.values+look).Stdout)
}

// start applies in the node and finds the host's process from outside. A run that ends at once has none.
func (m *machine) start(t *testing.T, more ...string) *running {
	t.Helper()
	return m.startAs(t, nil, more...)
}

// startTrapped starts a run whose calls a trap watches.
func (m *machine) startTrapped(t *testing.T, a aim) (*running, *trap) {
	t.Helper()
	p := setTrap(t, filepath.Join(m.trap, "trap"), a)
	return m.startAs(t, []string{"env", trapVariable + "=" + m.mark + "/trap", m.mark + "/trapped"}), p
}

// startAs starts a run by a program that becomes the host, with more arguments.
func (m *machine) startAs(t *testing.T, program []string, more ...string) *running {
	t.Helper()
	r := &running{ended: make(chan struct{})}
	argv := slices.Concat(program, []string{"/usr/bin/" + hostBinary, "apply", "--path", m.stream, "--plugin-dir", m.mark}, more)
	go func() {
		defer close(r.ended)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), waitLimit)
		defer cancel()
		got, err := m.Exec(ctx, argv...)
		if err != nil {
			t.Errorf("apply: %v", err)
		}
		r.code, r.words = got.ExitCode, got.Stdout+got.Stderr
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		for _, p := range marked(processes(t), m.mark, 0) {
			if p.program() == hostBinary {
				r.host = p.id
				return r
			}
		}
		select {
		case <-r.ended:
			return r
		case <-tick.C:
		}
	}
}

func (m *machine) await(t *testing.T, ids []string) {
	t.Helper()
	for _, id := range ids { // of the node's own
		const wait = `while [ -d "/proc/$1" ] && ! grep -q '^State:.Z' "/proc/$1/status"; do sleep 0.01; done`
		m.MustExec(t, "timeout", strconv.Itoa(int(waitLimit.Seconds())), "sh", "-c", wait, "sh", id)
	}
}

// undisturbed applies twice, on a machine that was reset, and measures.
func (m *machine) undisturbed(t *testing.T) (want observation, calm measure) {
	t.Helper()
	r := m.start(t)
	began := time.Now()
	awaitPlugin(t, r.host, r.ended)
	calm.beforePlugin = time.Since(began)
	<-r.ended
	calm.whole = time.Since(began)
	want = m.look(t)
	if err := afterRerun(want, want, r.code); err != nil {
		t.Fatalf("undisturbed: %v\n%s", err, r.words)
	}
	m.MustExec(t, "sh", "-c", m.reset)
	r, trap := m.startTrapped(t, aim{})
	trap.close(t)
	<-r.ended
	if err := afterRerun(m.look(t), want, r.code); err != nil {
		t.Fatalf("undisturbed, in a trap: %v\n%s", err, r.words)
	}
	calm.calls = trap.calls
	return want, calm
}

// TestNode disturbs runs on a live machine and runs once more.
func TestNode(t *testing.T) {
	m := bootSysctl(t, nil)
	want, calm := m.undisturbed(t)
	for i := range nodeRounds() {
		t.Run(fmt.Sprintf("%04d", i), func(t *testing.T) {
			const others = 1 << 32 // than in the trees
			round(t, planned(others+i), calm, func(a attack, calm measure) (bool, time.Duration) {
				return m.crash(t, a, calm, want, i%2 == 0)
			})
		})
	}
	t.Logf("-seed %d: an undisturbed run takes %v", *seed, calm)
}

// crash disturbs one run, on a machine with or without the sentinel of an earlier success, and checks a run of another
// stream and the rerun.
func (m *machine) crash(t *testing.T, a attack, calm measure, want observation, hadSentinel bool) (hit bool, lasted time.Duration) {
	t.Helper()
	reset := m.reset
	if !hadSentinel {
		reset += "rm -f /run/cluster-api/bootstrap-success.complete\n"
	}
	before := parseObservation(m.MustExec(t, "sh", "-c", reset+m.values+look).Stdout)
	if before.state == want.state || before.sentinel != hadSentinel || len(before.left) > 0 {
		t.Fatalf("the machine was not reset: %+v", before)
	}
	first, hit, lasted := disturb(t, m, a, calm)
	now := m.look(t)
	if err := errors.Join(afterKill(now, before, want, hadSentinel), checkExit(now, a, first.code)); err != nil {
		diverged(t, "after the %s: %v\n%s", a.victim, err, first.words)
	}
	other := apply(t, m, "--path", otherFile, "--phase", "provisioning")
	now = m.look(t)
	if err := afterKill(now, before, want, hadSentinel); err != nil || other.code != report.ExitOK {
		diverged(t, "another stream: exit %d, %v\n%s", other.code, err, other.words)
	}
	m.clean(t, now)
	rerun := apply(t, m)
	now = m.look(t)
	if err := afterRerun(now, want, rerun.code); err != nil {
		diverged(t, "%v\n%s", err, rerun.words)
	}
	m.clean(t, now)
	return hit, lasted
}

// clean checks that the leftovers are gone that a run of any stream removes after a killed one. What one round left is removed,
// so that the next one does not find it.
func (m *machine) clean(t *testing.T, now observation) {
	t.Helper()
	for _, l := range now.left {
		left(t, "%s", l)
		_, path, _ := strings.Cut(l, ": ")
		m.MustExec(t, "rm", "-rf", path)
	}
	for _, p := range marked(processes(t), m.mark, 0) {
		left(t, "lives after the run (killed now: %t): %v", kill(t, p), p)
	}
}
