// Package promise_test checks one promise of the host: a plan is exact. Random streams on random machines go through
// validate, plan, apply and plan again, with the real host, the scripted plugin of testenv/noop and the plugins of every kind that
// writes files. Images are of six distributions, damaged at random, and have the traces of other streams and of people. Parts of scripted streams are in files that RemoteConfig documents refer to; some of the files are written in the run.
// A model of the contract says what has to come of the scripted streams, on images and on live machines.
package promise_test

//machineadm:first

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	needs "github.com/machineadm/machineadm/internal/require"
)

// streams is how many streams are tried; PROMISE_STREAMS says another number.
const streams = 100

// lanes is how many streams are tried at once, whatever go test -parallel says: a run waits for its processes about as
// long as it needs a processor.
const lanes = 4

func TestAPlanIsExact(t *testing.T) {
	t.Parallel()
	usual, err := needs.Seed(t.Name())
	require.NoError(t, err)
	count, seed := number(t, "PROMISE_STREAMS", streams), number(t, "PROMISE_SEED", usual)
	t.Logf("PROMISE_SEED=%d PROMISE_STREAMS=%d", seed, count)
	dir, err := os.MkdirTemp(memory(), "promise") //nolint:usetesting // t.TempDir is on a disk, and a host keeps much durably
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	programs := build(t, filepath.Join(dir, "programs"))
	var all sync.WaitGroup
	for i := range uint64(lanes) {
		all.Go(func() {
			t.Run(strconv.FormatUint(i, 10), func(t *testing.T) {
				l := newLane(t, programs, filepath.Join(dir, strconv.FormatUint(i, 10)))
				exits := map[string]int{}
				for n := i; n < count && !t.Failed(); n += lanes {
					l.try(t, seed, n, exits)
				}
				t.Log("validate, plan, apply, plan, and more runs of apply:", exits)
			})
		})
	}
	all.Wait()
}

// try holds one stream to the promise.
func (l *lane) try(t *testing.T, seed, n uint64, exits map[string]int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, n)) //nolint:gosec // reproducible
	l.unlock()
	m := l.newMachine(t, !chance(r, 3) && l.live != "")
	if !m.isLive && chance(r, 2) {
		l.tryScene(t, r, seed, n, exits)
		return
	}
	s := newScripted(t, r, m)
	before := maps.Clone(s.model.tree)
	exits[s.hold(t, r)]++
	if t.Failed() {
		t.Logf("stream %d of PROMISE_SEED=%d, live %t, phase %s:\n%s\nmachine before: %v", n, seed, m.isLive, m.phase, s.text, before)
	}
}

// tryScene holds a stream of real kinds to the promise. A fault is shown with the smallest scene that has one.
func (l *lane) tryScene(t *testing.T, r *rand.Rand, seed, n uint64, exits map[string]int) {
	t.Helper()
	c := l.newScene(t, r)
	faults, codes := l.faults(t, c)
	exits[codes]++
	if len(faults) > 0 {
		c = l.smallest(t, c)
		faults, _ = l.faults(t, c)
		t.Errorf("stream %d of PROMISE_SEED=%d:\n%s\n%s", n, seed, strings.Join(faults, "\n"), c.script())
	}
	l.unlock()
}

// number is the value of an environment variable.
func number(t *testing.T, variable string, usual uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	value, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, variable)
	return value
}

// memory is a directory of a file system in memory, or the usual one for temporary files.
func memory() string {
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); err == nil && info.IsDir() {
		return shm
	}
	return ""
}

// build puts the host and the plugins into dir, built like a release's: they are started some thousand times.
func build(t *testing.T, dir string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for name, pkg := range map[string]string{
		"machineadm": "../../host/cmd/machineadm", "machineadm-noop-plugin-test": "../noop",
		"machineadm-sysctl-plugin-procfs":    "../../plugins/sysctl/procfs",
		"machineadm-timesync-plugin-chronyd": "../../plugins/timesync/chronyd", "machineadm-timesync-plugin-ntpd": "../../plugins/timesync/ntpd",
		"machineadm-timesync-plugin-systemd":             "../../plugins/timesync/systemd",
		"machineadm-container-runtime-plugin-containerd": "../../plugins/container-runtime/containerd",
		"machineadm-kubernetes-node-plugin-kubeadm":      "../../plugins/kubernetes-node/kubeadm",
		"machineadm-domain-join-plugin-activedirectory":  "../../plugins/domain-join/activedirectory",
		"machineadm-remote-configuration-provider-file":  "../../plugins/remote-config/file",
	} {
		require.NoError(t, needs.Build(t.Context(), pkg, filepath.Join(dir, name)))
	}
	for name, script := range map[string]string{
		"machineadm-noop-plugin-other": `{"distributions": ["debian"]}`,
		"machineadm-late-plugin-test":  `{"kinds": [{"apiVersion": "example.com/v1", "kind": "Late", "phase": "provisioning"}]}`,
		"machineadm-exact-plugin-test": `{"kinds": [{"apiVersion": "example.com/v1", "kind": "Exact", "provides": ["thing:"]}]}`,
	} {
		require.NoError(t, os.Link(filepath.Join(dir, "machineadm-noop-plugin-test"), filepath.Join(dir, name)))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".script"), []byte(script), 0o600))
	}
	return dir
}
