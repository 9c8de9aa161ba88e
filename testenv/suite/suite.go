package suite

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/machineadm/machineadm/internal/require"
)

// Options say what a run of tests does.
type Options struct {
	Root   string   // of the checkout
	Target string   // see Targets
	Dirs   []string // only these packages of the target, below Root; none: all
	Flags  []string // of go test
	Race   bool     // the race detector for packages of the product that start goroutines
	// CI passes over packages whose content key has not changed, runs core tests first, and gives a failing package of the slow tiers
	// a second try.
	CI bool
	// Began, and the time since then after which no package of the slow tiers begins, and all are ended. Zero: no limit.
	Began          time.Time
	LastStart, End time.Duration
	// Passed is a file with the tests that an earlier part of this run passed, which need not run again; empty for none.
	Passed string
	Out    io.Writer
}

// fast is the target of the tests that need nothing but Go, git and make.
const fast = "test"

// Targets are the values of Options.Target. Slow are the tiers system, cluster and vm at once.
func Targets() []string {
	return []string{fast, string(require.Controller), string(require.System), string(require.Cluster), string(require.VM), "slow"}
}

// Run runs the tests of a target and reports whether all is well. The error says that they could not be run.
func Run(ctx context.Context, o Options) (ok bool, err error) {
	all, err := Load(o.Root)
	if err != nil {
		return false, err
	}
	chosen := o.choose(all)
	if len(chosen) == 0 {
		return false, fmt.Errorf("no package of the target %s is chosen: it is one of %s, and PKG= names packages of it", o.Target, strings.Join(Targets(), ", "))
	}
	r := &runner{Options: o, began: time.Now(), all: all, chosen: chosen, left: len(chosen)}
	if o.Target == fast || o.Target == string(require.Controller) {
		err = r.quick(ctx)
	} else {
		err = r.slow(ctx)
	}
	return r.summarize(ctx, err)
}

// choose returns the packages of the target.
func (o Options) choose(all []Package) []Package {
	var chosen []Package
	for _, p := range all {
		if o.has(p) && (len(o.Dirs) == 0 || slices.ContainsFunc(o.Dirs, func(dir string) bool { return matches(dir, p.Dir) })) {
			chosen = append(chosen, p)
		}
	}
	return chosen
}

// matches reports whether an argument such as ./testenv/timesync or ./plugins/... names a package.
func matches(argument, dir string) bool {
	argument = strings.TrimSuffix(strings.TrimPrefix(argument, "./"), "/")
	if below, all := strings.CutSuffix(argument, "..."); all {
		below = strings.TrimSuffix(below, "/")
		return below == "" || dir == below || strings.HasPrefix(dir, below+"/")
	}
	return argument == dir
}

// has reports whether the target runs tests of a package. Packages of the tier cluster run as a whole there, and only there.
func (o Options) has(p Package) bool {
	switch o.Target {
	case fast:
		return !p.Kubernetes && !p.Whole && (!p.Nested || len(p.Tiers) == 0)
	case string(require.Controller):
		return p.in(require.Controller)
	case string(require.System):
		return p.in(require.System) && !p.in(require.Cluster)
	case string(require.Cluster):
		return p.in(require.Cluster)
	case string(require.VM):
		return p.in(require.VM)
	case "slow":
		return p.in(require.System) || p.in(require.Cluster) || p.in(require.VM)
	}
	return false
}

// tiers are those that run in the target. What needs a cluster or a virtual machine takes what the tier system has.
func (o Options) tiers() []require.TierName {
	switch o.Target {
	case fast:
		return nil
	case string(require.Cluster):
		return []require.TierName{require.System, require.Cluster}
	case string(require.VM):
		return []require.TierName{require.System, require.VM}
	case "slow":
		return []require.TierName{require.System, require.Cluster, require.VM}
	}
	return []require.TierName{require.TierName(o.Target)}
}

// runner is one run of a target.
type runner struct {
	Options
	began       time.Time
	all, chosen []Package

	mutex   sync.Mutex
	left    int
	results []Result
	notRun  []string // lines of the summary
	late    []string // packages that had no time for the fourth time
	flaky   []string // lines of the summary
	faults  []string
}

// command is a call of go test for packages of the module.
func (r *runner) command(dirs []string, flags ...string) command {
	return command{
		root: r.Root, dirs: dirs, tiers: r.tiers(), log: (*log)(r), flags: append(flags, r.Flags...),
		env: []string{
			// The sources stay as they are for as long: testenv/tools/product.go.
			fmt.Sprintf("MACHINEADM_TEST_RUN=%d.%d", os.Getpid(), r.began.UnixNano()),
			// Tests make much garbage and live shortly: with Go's 100 a sixth of their processor time is collection.
			"GOGC=" + cmp.Or(os.Getenv("GOGC"), "300"),
		},
	}
}

// done prints the line of a package that has ended, and keeps its result.
func (r *runner) done(result Result) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.left--
	r.results = append(r.results, result)
	r.show(result)
}

func (r *runner) show(result Result) {
	if !result.OK {
		fmt.Fprintf(r.Out, "%s\n", strings.TrimRight(result.Output, "\n"))
	}
	line := result.Line
	if line == "" {
		line = fmt.Sprintf("FAIL\t%s\t%.3fs", result.Package, result.Seconds)
	}
	fmt.Fprintf(r.Out, "%s\t[%d of %d left, %s]\n", line, max(r.left, 0), len(r.chosen), time.Since(r.began).Round(time.Second))
}

// log writes what commands say beside their results.
type log runner

func (l *log) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.Out.Write(p)
}

func (r *runner) printf(format string, args ...any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	fmt.Fprintf(r.Out, format, args...)
}
