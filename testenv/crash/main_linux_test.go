// Package crash kills runs with SIGKILL at random moments, on image trees and on a booted node, and proves that one
// rerun brings the state of an undisturbed run. A failure names its round and the seed: go test -seed N repeats whom
// each round kills, and after which part of an undisturbed run.
package crash

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

const (
	hostBinary   = "machineadm"
	pluginBinary = "machineadm-sysctl-plugin-procfs"
)

var (
	seed  = flag.Uint64("seed", 0, "of the random moments; 0 takes a new one, which a failure shows")
	built string // where the binaries and all trees are; short, because the name of a socket is
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(testMain(m))
}

func testMain(m *testing.M) (code int) {
	for *seed == 0 {
		*seed = rand.Uint64()
	}
	var err error
	if built, err = os.MkdirTemp("", "crash-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := os.RemoveAll(built); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	for name, pkg := range map[string]string{hostBinary: "../../host/cmd/machineadm", pluginBinary: "../../plugins/sysctl/procfs"} {
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(built, name), pkg)
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // a node has its own C library
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n%s", name, err, out)
			return 1
		}
	}
	return m.Run()
}

// victim is who is killed.
type victim string

const (
	victimHost   victim = "host"
	victimPlugin victim = "plugin"
	victimBoth   victim = "host and plugin"
)

// attack is what a round does: whom it kills, and after which part, 0 to 1, of an undisturbed run.
type attack struct {
	victim victim
	part   float64
}

// planned depends on seed and round alone, so that a round can be repeated by itself.
func planned(round int) attack {
	r := rand.New(rand.NewPCG(*seed, uint64(round))) //nolint:gosec // to be repeated, not to be secret
	return attack{victim: []victim{victimHost, victimPlugin, victimBoth}[r.IntN(3)], part: r.Float64()}
}

// sooner is the same attack for a run that ended before its moment: how long a run takes depends on what else the
// machine does, and a late moment can be missed again and again.
func (a attack) sooner() attack {
	a.part *= 0.7
	return a
}

// maxTries bounds how often a round is repeated because its run ended before the moment of the attack. Such a run was an
// undisturbed one under the present load, so that the next moment is measured by it.
const maxTries = 8

// tally is what became of the attacks.
type tally struct {
	mu             sync.Mutex
	hit            map[victim]int
	missed, locked int
}

func (y *tally) add(v victim, hits, locked int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.locked += locked
	if hits == 0 {
		y.missed++
		return
	}
	y.hit[v]++
}

func (y *tally) String() string {
	return fmt.Sprintf("killed %v, %d more had ended before; %d reruns met the lock", y.hit, y.missed, y.locked)
}
