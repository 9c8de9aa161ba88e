package crash

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const (
	nodeRounds = 50
	nodeFile   = "/etc/machineadm/node.yaml"
)

// nodeStream sets what belongs to a network namespace: the node's own, which goes with it.
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

// look prints what the stream is about, one line each: values, files with their modes and contents, the sentinel, what
// must not be left, and the report on a line of its own.
const look = `set -eu
cd /proc/sys
for key in net/ipv4/ip_forward net/core/somaxconn net/ipv4/tcp_rmem net/ipv4/ip_local_port_range net/ipv4/tcp_fin_timeout; do
	echo "state $key $(tr '\t' ' ' <$key)"
done
find /etc/sysctl.d /etc/modules-load.d -name '*machineadm*' -printf 'state %p %M %l\n' -type f -exec sha256sum {} + | sed 's/^\([0-9a-f]\)/state \1/' | sort
! test -e /run/cluster-api/bootstrap-success.complete || echo sentinel
find /etc /run/machineadm /run/cluster-api /var/lib/machineadm /tmp \( -name '.*.machineadm-tmp*' -o -name '.sockets-*' -o -path '/tmp/machineadm-*' \) -printf 'left %p\n' 2>/dev/null || true
printf 'report '
tr -d '\n' </run/machineadm/report.json 2>/dev/null || true
echo
`

// sight is what look prints.
type sight struct {
	state    string
	sentinel bool
	left     []string
	report   string
}

func parseSight(text string) sight {
	var s sight
	for line := range strings.Lines(text) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch kind {
		case "state":
			s.state += rest + "\n"
		case "sentinel":
			s.sentinel = true
		case "left":
			s.left = append(s.left, rest)
		case "report":
			s.report = rest
		}
	}
	return s
}

// afterKill says what is wrong with what a killed run left: a sentinel on a machine that is neither prepared nor as it
// was when the sentinel was written (hadSentinel), or a report that is not whole.
func afterKill(now, before, want sight, hadSentinel bool) error {
	if _, err := parseReport([]byte(now.report + "\n")); err != nil {
		return err
	}
	if now.sentinel && now.state != want.state && (!hadSentinel || now.state != before.state) {
		return fmt.Errorf("there is a sentinel, and the machine is half-way:\n%s", now.state)
	}
	return nil
}

// afterRerun says what is wrong with a rerun that ended with this code.
func afterRerun(now, want sight, code int) error {
	r, err := parseReport([]byte(now.report + "\n"))
	if err != nil {
		return err
	}
	switch {
	case code != report.ExitOK:
		return fmt.Errorf("the rerun ended with %d", code)
	case now.state != want.state:
		return fmt.Errorf("the rerun left\n%swant\n%s", now.state, want.state)
	case !now.sentinel:
		return fmt.Errorf("the rerun left no sentinel")
	case len(now.left) > 0:
		return fmt.Errorf("left behind: %q", now.left)
	}
	return honest(r, code)
}

// machine is the node of the campaign. mark is a directory that only its processes name.
type machine struct {
	*nodes.Node
	mark  string
	reset string // a script that brings the values and files of the first boot back
}

func bootMachine(t *testing.T) *machine {
	m := &machine{mark: "/usr/libexec/" + filepath.Base(built)}
	m.Node = nodes.Boot(t, nodes.Options{Suite: nodes.Trixie, Prepare: func(root string) error {
		for from, to := range map[string]string{hostBinary: "/usr/bin/" + hostBinary, pluginBinary: m.mark + "/" + pluginBinary} {
			data, err := os.ReadFile(filepath.Join(built, from))
			if err != nil {
				return err
			}
			if err := install(root, to, data, 0o755); err != nil {
				return err
			}
		}
		return install(root, nodeFile, []byte(nodeStream), 0o600)
	}})
	m.reset = "set -eu\nrm -f /etc/sysctl.d/99-machineadm-* /etc/modules-load.d/machineadm-*\n" +
		// What one round left is told once.
		"find /etc /run/machineadm /run/cluster-api /var/lib/machineadm -name '.*.machineadm-tmp*' -delete\n"
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

func (m *machine) look(t *testing.T) sight {
	t.Helper()
	return parseSight(m.MustExec(t, "sh", "-c", look).Stdout)
}

// start applies in the node and finds the host's process from outside. A run that ends at once has none.
func (m *machine) start(t *testing.T) *running {
	t.Helper()
	r := &running{ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		got, err := m.Exec(ctx, hostBinary, "apply", "--path", nodeFile, "--plugin-dir", m.mark)
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

// apply applies once, and again while processes of a run that was killed hold the lock, which it ends.
func (m *machine) apply(t *testing.T) *running {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		r := m.start(t)
		<-r.ended
		if r.code != report.ExitLocked || time.Now().After(deadline) {
			return r
		}
		if left := named(r.words); len(left) > 0 {
			m.MustExec(t, append([]string{"sh", "-c", `kill -KILL "$@" || true`, "sh"}, left...)...)
		}
	}
}

// undisturbed applies once and measures.
func (m *machine) undisturbed(t *testing.T) (want sight, calm duration) {
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
	return want, calm
}

// TestNode kills runs on a live machine and runs once more.
func TestNode(t *testing.T) {
	m := bootMachine(t)
	want, calm := m.undisturbed(t)
	hit, missed := map[victim]int{}, 0
	for i := range nodeRounds {
		a := planned(treeRuns + i)
		span, hits := calm.of(a.victim), 0
		for try := 0; hits == 0; try++ {
			if try == maxTries {
				t.Fatalf("-seed %d, round %d: every one of %d runs ended before its moment", *seed, i, maxTries)
			}
			var err error
			at := fmt.Sprintf("-seed %d, round %d, try %d: kill %s at %.3f of %s", *seed, i, try, a.victim, a.part, span)
			if hits, span, err = m.crash(t, a, span, want, i%2 == 0); err != nil {
				t.Errorf("%s: %v", at, err)
			}
			if hits == 0 {
				missed++
				a = a.sooner()
			}
		}
		hit[a.victim]++
	}
	t.Logf("-seed %d: an undisturbed run takes %v; killed %v, %d more had ended before", *seed, calm, hit, missed)
}

// crash kills one run, on a machine with or without the sentinel of an earlier success, and judges the rerun.
func (m *machine) crash(t *testing.T, a attack, span time.Duration, want sight, hadSentinel bool) (int, time.Duration, error) {
	t.Helper()
	reset := m.reset
	if !hadSentinel {
		reset += "rm -f /run/cluster-api/bootstrap-success.complete\n"
	}
	before := parseSight(m.MustExec(t, "sh", "-c", reset+look).Stdout)
	if before.state == want.state || before.sentinel != hadSentinel || len(before.left) > 0 {
		t.Fatalf("the machine was not reset: %+v", before)
	}
	first := m.start(t)
	hits, lasted := strike(t, a, span, first.host, first.ended)
	<-first.ended
	if err := afterKill(m.look(t), before, want, hadSentinel); err != nil {
		return hits, lasted, fmt.Errorf("after the kill: %w\n%s", err, first.words)
	}
	rerun := m.apply(t)
	if err := afterRerun(m.look(t), want, rerun.code); err != nil {
		return hits, lasted, fmt.Errorf("%w\n%s", err, rerun.words)
	}
	if alive := marked(processes(t), m.mark, 0); len(alive) > 0 {
		return hits, lasted, fmt.Errorf("processes live after the rerun: %v", alive)
	}
	return hits, lasted, nil
}
