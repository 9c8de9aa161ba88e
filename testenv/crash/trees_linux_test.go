package crash

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// undisturbed runs as many at once as the campaign does, and returns the tree and the measures of the middle one.
func undisturbed(t *testing.T, prepare func(*testing.T) *bench) (tree string, calm measure) {
	t.Helper()
	var all []measure
	for range 3 {
		var benches []*bench
		var runs []*running
		began := time.Now()
		for range runtime.GOMAXPROCS(0) {
			b := prepare(t)
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
			all = append(all, measure{whole: r.took, beforePlugin: min(before, r.took)})
		}
	}
	slices.SortFunc(all, func(a, b measure) int { return cmp.Compare(a.whole, b.whole) })
	calm = all[len(all)/2]
	b := prepare(t)
	r, trap := b.startTrapped(t, aim{})
	trap.close(t)
	<-r.ended
	b.settled(t, r.outcome, tree)
	calm.calls = trap.calls
	if t.Failed() {
		t.FailNow()
	}
	return tree, calm
}

// TestTrees disturbs runs on image roots and runs once more.
//
//machineadm:core
func TestTrees(t *testing.T) { trees(t, newBench, 0, treeRounds()) }

// TestReferences is TestTrees with a stream in an encrypted file that a document names. What was read is gone in the end.
func TestReferences(t *testing.T) { trees(t, referring, 1<<34, referenceRounds()) }

// trees disturbs runs on image roots, in rounds that have numbers from first on.
func trees(t *testing.T, prepare func(*testing.T) *bench, first, rounds int) {
	t.Helper()
	want, calm := undisturbed(t, prepare)
	t.Run("run", func(t *testing.T) {
		for i := range rounds {
			t.Run(fmt.Sprintf("%04d", i), func(t *testing.T) {
				t.Parallel()
				round(t, planned(first+i), calm, func(a attack, calm measure) (bool, time.Duration) {
					return crashTree(t, prepare(t), a, calm, want)
				})
			})
		}
	})
	t.Logf("-seed %d: an undisturbed run takes %v", *seed, calm)
}

// TestLockOfAKilledRun: the next run names the processes that a killed one left, and another succeeds when they have ended.
func TestLockOfAKilledRun(t *testing.T) {
	b := newBench(t)
	b.linger(t)
	first := b.start(t)
	awaitPlugin(t, first.host, first.ended)
	for _, p := range victims(t, first.host, victimHost) {
		kill(t, p)
	}
	<-first.ended
	next := b.start(t)
	<-next.ended
	ids := named(next.words)
	if next.code != report.ExitLocked || len(ids) == 0 {
		t.Fatalf("exit %d, and named are %q\n%s", next.code, ids, next.words)
	}
	b.await(t, ids)
	if last := apply(t, b); last.code != report.ExitOK {
		t.Errorf("exit %d\n%s", last.code, last.words)
	}
	b.clean(t)
}

// crashTree disturbs one run and checks the rerun.
func crashTree(t *testing.T, b *bench, a attack, calm measure, want string) (hit bool, lasted time.Duration) {
	t.Helper()
	if a.lingers {
		b.linger(t)
	}
	reports := readReports(filepath.Join(b.run, "report.json"))
	first, hit, lasted := disturb(t, b, a, calm)
	if err := b.checkExit(a, first.code); err != nil {
		diverged(t, "after the %s: %v\n%s", a.victim, err, first.words)
	}
	if o := apply(t, b, "--path", b.other, "--phase", "provisioning"); o.code != report.ExitOK {
		diverged(t, "another stream: exit %d\n%s", o.code, o.words)
	}
	b.clean(t)
	rerun := apply(t, b)
	if err := reports.close(); err != nil {
		diverged(t, "report.json: %v", err)
	}
	b.settled(t, rerun.outcome, want)
	return hit, lasted
}

// checkExit compares the report of a run with its exit code, if the run ended by itself.
func (b *bench) checkExit(a attack, code int) error {
	if code < 0 && a.victim != victimCall { // killed
		return nil
	}
	r, err := b.report()
	if code == report.ExitState && (err == nil || errors.Is(err, fs.ErrNotExist)) { // it could not write its report
		return nil
	}
	if err != nil {
		return err
	}
	return checkReport(r, code)
}
