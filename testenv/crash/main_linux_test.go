// Package crash disturbs runs, on image trees and on booted nodes, and proves that a run of another stream removes their
// leftovers and that one rerun reaches the state of an undisturbed run. A round kills processes with SIGKILL at a random
// moment, kills the process that makes one system call that changes a file, or makes such a call fail. A failure names its
// round and the seed: go test -seed N repeats what each round attacks, and after which part of an undisturbed run.
package crash

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/tools"
)

const (
	hostBinary   = "machineadm"
	pluginBinary = "machineadm-sysctl-plugin-procfs"
	sourcePlugin = "machineadm-remote-configuration-provider-file"
	keyPlugin    = "machineadm-plugin-encryption-provider-file"
	// timesyncPlugin is the beginning of the names of the other plugins.
	timesyncPlugin = "machineadm-timesync-plugin-"
)

var (
	seed   = flag.Uint64("seed", 0, "of the random moments; 0 takes that of MACHINEADM_SEED, or another one that a failure shows")
	rounds = flag.Int("rounds", 50, "how many runs are disturbed, a fifth of them on the node; from 125 on, also runs of each time daemon")

	built   string // where the binaries and all trees are; short, because the name of a socket is
	results = tally{hits: map[victim]int{}}
)

func TestMain(m *testing.M) {
	if socket := os.Getenv(trapVariable); socket != "" {
		fmt.Fprintln(os.Stderr, "trap:", becomeTrapped(socket, os.Args[1:]))
		os.Exit(1)
	}
	flag.Parse()
	os.Exit(testMain(m))
}

func testMain(m *testing.M) (code int) {
	if !require.Runs(require.System) {
		return m.Run()
	}
	var err error
	if *seed == 0 {
		if *seed, err = require.Seed("crash"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
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
	programs := map[string]string{
		hostBinary: "host/cmd/machineadm", pluginBinary: "plugins/sysctl/procfs",
		sourcePlugin: "plugins/remote-config/file", keyPlugin: "plugins/encrypted-config/file", nodePlugin: "plugins/kubernetes-node/kubeadm", standIn: "testenv/kubeadm/cmd/kubeadm",
	}
	for provider := range timeDaemons() {
		programs[timesyncPlugin+provider] = "plugins/timesync/" + provider
	}
	if err := tools.Products(context.Background(), built, programs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code = m.Run()
	if len(results.hits) > 0 {
		fmt.Println(&results)
	}
	return code
}

// victim is what an attack hits.
type victim string

const (
	victimHost   victim = "kill of the host"
	victimPlugin victim = "kill of the plugin"
	victimBoth   victim = "kill of host and plugin"
	victimCaller victim = "kill in a call that changes a file"
	victimCall   victim = "fault of a call that changes a file"
)

// trapped reports whether the attack waits for a call instead of a moment.
func (v victim) trapped() bool { return v == victimCaller || v == victimCall }

// attack is the disturbance of a round, after a part (0 to 1) of the duration of an undisturbed run.
type attack struct {
	victim victim
	part   float64
	errno  unix.Errno // of a fault
	// exactly is the call that is hit, instead of the part.
	exactly aim
	// lingers means that the plugin has a process that outlives the SIGKILL of the host and holds the lock.
	lingers bool
}

// planned depends on seed and round alone, so that a round can be repeated by itself.
func planned(round int) attack {
	r := rand.New(rand.NewPCG(*seed, uint64(round))) //nolint:gosec // repeatable, not secret
	a := attack{victim: []victim{victimHost, victimPlugin, victimBoth, victimCaller, victimCall}[r.IntN(5)], part: r.Float64()}
	if errno := []unix.Errno{unix.EIO, unix.ENOSPC}[r.IntN(2)]; a.victim == victimCall {
		a.errno = errno
	}
	a.lingers = r.IntN(8) == 0
	return a
}

// aim is the call that an attack waits for.
func (a attack) aim(calm measure) aim {
	if a.exactly.at > 0 {
		return a.exactly
	}
	return aim{at: 1 + int(a.part*float64(calm.calls)), errno: a.errno}
}

func (a attack) String() string {
	if a.errno != 0 {
		return fmt.Sprintf("%s (%v) at %.3f", a.victim, a.errno, a.part)
	}
	return fmt.Sprintf("%s at %.3f", a.victim, a.part)
}

// sooner is the same attack for a run that ended before its moment: how long a run takes depends on what else the
// machine does, and a late moment can be missed again and again.
func (a attack) sooner() attack {
	a.part *= 0.7
	return a
}

// A fifth of the rounds disturbs runs on the node, the others runs on image trees, some of them with references.
func nodeRounds() int { return *rounds / 5 }
func treeRounds() int { return *rounds - nodeRounds() - referenceRounds() }

// referenceRounds is a part of the rounds on trees.
func referenceRounds() int { return *rounds / 6 }

// timesyncRounds is the number for each time daemon and direction.
func timesyncRounds() int { return max(1, *rounds/125) }

// joinRounds is the number for each document that makes a node.
func joinRounds() int { return max(1, *rounds/125) }

// tally counts the results of the attacks.
type tally struct {
	mu                             sync.Mutex
	hits                           map[victim]int
	locked, divergences, leftovers int
}

func (y *tally) hit(v victim) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.hits[v]++
}

func (y *tally) lock() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.locked++
}

func (y *tally) String() string {
	y.mu.Lock()
	defer y.mu.Unlock()
	kills := 0
	for v, n := range y.hits {
		if v != victimCall {
			kills += n
		}
	}
	return fmt.Sprintf("campaign: %d kills, %d faults, %d exits 5 passed, %d divergences, %d leftovers",
		kills, y.hits[victimCall], y.locked, y.divergences, y.leftovers)
}

// diverged fails a test for a difference from an undisturbed run.
func diverged(t testing.TB, format string, arguments ...any) {
	t.Helper()
	results.mu.Lock()
	results.divergences++
	results.mu.Unlock()
	t.Errorf(format, arguments...)
}

// left fails a test for what a run left behind.
func left(t testing.TB, format string, arguments ...any) {
	t.Helper()
	results.mu.Lock()
	results.leftovers++
	results.mu.Unlock()
	t.Errorf(format, arguments...)
}
