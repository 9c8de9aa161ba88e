package crash

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

const (
	treeRuns = 200
	// patience bounds every wait; a run takes well under a second.
	patience = 30 * time.Second
)

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

// otherStream has nothing to do in its phase: a run of it only cleans up.
const otherStream = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: Sysctl
metadata: {name: limits}
spec: {parameters: {kernel.panic: 20}}
`

// bench is an image root and all that a run on it keeps.
type bench struct{ dir, root, state, run, plugins, tmp, stream, other string }

// newBench makes an image that holds something to create, to replace, to give its mode back, and to remove.
func newBench(t *testing.T) *bench {
	t.Helper()
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
	for _, d := range []string{b.state, b.run, b.plugins, b.tmp, at("root/etc/modules-load.d"), at("root/usr/lib/sysctl.d")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{
		b.stream:               treeStream,
		b.other:                otherStream,
		at("root/etc/hosts"):   "127.0.0.1 localhost\n",
		at("root/etc/foreign"): "# not ours\n",
		at("root/usr/lib/sysctl.d/50-vendor.conf"):               "kernel.panic = 5\n",
		at("root/usr/lib/sysctl.d/99-machineadm-limits.conf"):    "kernel.panic = 0\n",
		at("root/etc/modules-load.d/machineadm-tuning.conf"):     "overlay\n",
		at("root/etc/modules-load.d/machineadm-kubernetes.conf"): "an earlier one\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A link inside the image, as Debian has them, on the way to what is written.
	for link, target := range map[string]string{"root/etc/sysctl.d": "/usr/lib/sysctl.d", "root/etc/mtab": "/proc/self/mounts"} {
		if err := os.Symlink(target, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(built, pluginBinary), filepath.Join(b.plugins, pluginBinary)); err != nil {
		t.Fatal(err)
	}
	return b
}

// outcome is how an apply ended, and which processes of an earlier run lived when its first change began.
type outcome struct {
	code   int
	words  string
	strays []process
}

// running is an apply that goes on. Of an apply that has ended, only the outcome is left.
type running struct {
	host  int
	ended chan struct{}
	took  time.Duration
	outcome
}

func (b *bench) start(t *testing.T, more ...string) *running {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	arguments := []string{
		"apply", "--output", "json", "--path", b.stream,
		"--root", b.root, "--state-dir", b.state, "--run-dir", b.run, "--plugin-dir", b.plugins,
	}
	c := exec.CommandContext(ctx, filepath.Join(built, hostBinary), append(arguments, more...)...)
	c.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR=" + b.tmp}
	c.WaitDelay = patience
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
					r.strays = marked(processes(t), b.plugins, r.host)
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

// apply applies once, and again while processes of a run that was killed hold the lock, which it ends. It also says how
// often it did.
func (b *bench) apply(t *testing.T, more ...string) (o outcome, locked int) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; locked++ {
		r := b.start(t, more...)
		<-r.ended
		if r.code != report.ExitLocked || time.Now().After(deadline) {
			return r.outcome, locked
		}
		endNamed(t, r.words)
	}
}

// settled refuses everything but the success of the last run and the tree of an undisturbed one.
func (b *bench) settled(t *testing.T, o outcome, want string) {
	t.Helper()
	if o.code != report.ExitOK {
		t.Errorf("exit %d\n%s", o.code, o.words)
	}
	if len(o.strays) > 0 {
		t.Errorf("processes of the killed run lived when the rerun began its first change: %v", o.strays)
	}
	for _, p := range marked(processes(t), b.plugins, 0) {
		t.Errorf("lives after the run (killed now: %t): %v", kill(t, p), p)
	}
	if d := machinetest.Diff(want, machinetest.Tree(t, b.root)); d != "" {
		t.Errorf("the tree differs from that of an undisturbed run:\n%s", d)
	}
	b.clean(t)
	r, err := b.report()
	if err != nil {
		t.Fatal(err)
	}
	if err := honest(r, o.code); err != nil {
		t.Error(err)
	}
}

// clean refuses what a run must not leave, a killed one included.
func (b *bench) clean(t *testing.T) {
	t.Helper()
	left, err := leftovers(b.root, b.state, b.run, b.tmp)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range left {
		t.Error(l)
	}
}

func (b *bench) report() (report.Report, error) {
	data, err := os.ReadFile(filepath.Join(b.run, "report.json"))
	if err != nil {
		return report.Report{}, err
	}
	return parseReport(data)
}

// undisturbed runs as many at once as the campaign does, and returns the tree and the times of the middle one.
func undisturbed(t *testing.T) (tree string, calm duration) {
	t.Helper()
	var all []duration
	for range 3 {
		var benches []*bench
		var runs []*running
		began := time.Now()
		for range runtime.GOMAXPROCS(0) {
			b := newBench(t)
			benches, runs = append(benches, b), append(runs, b.start(t))
		}
		last := runs[len(runs)-1]
		awaitPlugin(t, last.host, last.ended)
		before := time.Since(began)
		for i, r := range runs {
			<-r.ended
			if tree == "" {
				tree = machinetest.Tree(t, benches[i].root)
			}
			benches[i].settled(t, r.outcome, tree)
			all = append(all, duration{r.took, min(before, r.took)})
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	slices.SortFunc(all, func(a, b duration) int { return cmp.Compare(a.whole, b.whole) })
	return tree, all[len(all)/2]
}

// TestTrees kills runs on image roots and runs once more.
func TestTrees(t *testing.T) {
	want, calm := undisturbed(t)
	all := &tally{hit: map[victim]int{}}
	t.Run("run", func(t *testing.T) {
		for i := range treeRuns {
			t.Run(fmt.Sprintf("%03d", i), func(t *testing.T) {
				t.Parallel()
				a := planned(i)
				span := calm.of(a.victim)
				for try := range maxTries {
					t.Logf("-seed %d, try %d: kill %s at %.3f of %s", *seed, try, a.victim, a.part, span)
					var hits int
					if hits, span = crashTree(t, a, span, want, all); hits > 0 {
						return
					}
					a = a.sooner()
				}
				t.Errorf("every one of %d runs ended before its moment", maxTries)
			})
		}
	})
	t.Logf("-seed %d: an undisturbed run takes %v; %v", *seed, calm, all)
}

// crashTree kills one run and judges the rerun.
func crashTree(t *testing.T, a attack, span time.Duration, want string, all *tally) (hits int, lasted time.Duration) {
	t.Helper()
	b := newBench(t)
	reports := readReports(filepath.Join(b.run, "report.json"))
	first := b.start(t)
	hits, lasted = strike(t, a, span, first.host, first.ended)
	<-first.ended
	if a.victim == victimPlugin || hits == 0 { // the host lived on and tells
		if r, err := b.report(); err != nil {
			t.Error(err)
		} else if err := honest(r, first.code); err != nil {
			t.Errorf("the run whose plugin was killed: %v\n%s", err, first.words)
		}
	}
	if o, _ := b.apply(t, "--path", b.other, "--phase", "provisioning"); o.code != report.ExitOK {
		t.Errorf("another stream: exit %d\n%s", o.code, o.words)
	}
	b.clean(t)
	rerun, locked := b.apply(t)
	if err := reports.close(); err != nil {
		t.Errorf("report.json: %v", err)
	}
	b.settled(t, rerun, want)
	all.add(a.victim, hits, locked)
	return hits, lasted
}
