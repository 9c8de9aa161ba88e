package cli

import (
	"bufio"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/state"
)

// begin starts a run on an image with the default directories, and returns it in the middle of a change.
func (b *bench) begin(tmp, root string) *exec.Cmd {
	b.t.Helper()
	c := b.onImage(tmp, root, noopDoc("slow", "touch: [/one], apply: hang"))
	out, err := c.StdoutPipe()
	require.NoError(b.t, err)
	require.NoError(b.t, c.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "doing: ") {
	}
	return c
}

func (b *bench) onImage(tmp, root, stream string) *exec.Cmd {
	c := exec.Command(filepath.Join(built, hostBinary), "--plugin-dir", b.plugins, "apply", "--root", root, "--path", b.stream(stream))
	c.Env = append(os.Environ(), "TMPDIR="+tmp)
	return c
}

// TestLeftoversOfAKilledRun: a run of another stream removes what a killed one left in the image and in TMPDIR, and
// nothing of a run that is still going on.
func TestLeftoversOfAKilledRun(t *testing.T) {
	b := newBench(t)
	b.noop("")
	tmp := everyones(t) // a short name, for sockets
	temporaries := func() []string {
		found, err := filepath.Glob(filepath.Join(tmp, "*"))
		require.NoError(t, err)
		return found
	}
	killed := b.begin(tmp, b.root)
	require.NoError(t, killed.Process.Kill())
	_ = killed.Wait() // it was killed
	require.NotEmpty(t, temporaries())
	require.NoError(t, state.NewWrites(b.root, t.TempDir()).Record([]string{"/etc/key"}))
	leftover := filepath.Join(b.root, "etc/.key.machineadm-tmp")
	write(t, leftover, "PRIVATE KEY")

	other := filepath.Join(b.dir, "other")
	require.NoError(t, os.Mkdir(other, 0o700))
	before := temporaries()
	living := b.begin(tmp, other)
	var kept []string
	for _, dir := range temporaries() {
		if !slices.Contains(before, dir) {
			kept = append(kept, dir)
		}
	}
	require.NotEmpty(t, kept)
	eventually(t, "the killed run gives its lock up", func() bool {
		return output(t, b.onImage(tmp, b.root, noopDoc("b", "touch: [/two]"))).code == report.ExitOK
	})
	assert.NoFileExists(t, leftover)
	assert.NoFileExists(t, filepath.Join(b.root, state.ImageWrites))
	assert.Equal(t, kept, temporaries())
	require.NoError(t, living.Process.Signal(os.Interrupt))
	_ = living.Wait() // exit 8
	assert.Empty(t, temporaries())
}

// TestWritesAreRecorded: while a change is made its file is on record, and no longer when the run has ended.
func TestWritesAreRecorded(t *testing.T) {
	b := newBench(t)
	b.install(sysctlBinary, sysctlBinary, "")
	got := b.apply(sysctlDoc)
	require.Equal(t, report.ExitOK, got.code, got)
	assert.NoFileExists(t, filepath.Join(b.root, state.ImageWrites))
	assert.FileExists(t, filepath.Join(b.root, "etc/sysctl.d/99-machineadm-a.conf"))
}

func TestRemoveStale(t *testing.T) {
	t.Parallel()
	parent, outside := t.TempDir(), t.TempDir()
	p := &place{}
	for _, name := range []string{"machineadm-run-1/plugins/a", "machineadm-2", "run-3"} {
		require.NoError(t, os.MkdirAll(filepath.Join(parent, name), 0o700))
	}
	require.NoError(t, os.Symlink(outside, filepath.Join(parent, "machineadm-run-link")))
	write(t, filepath.Join(parent, "machineadm-run-file"), "")
	held, err := os.MkdirTemp(parent, runPrefix) //nolint:usetesting // one that is locked
	require.NoError(t, err)
	lock, err := state.Acquire(ownerLock(held))
	require.NoError(t, err)
	p.cleanup = append(p.cleanup, func() { removeOwned(held, lock) })
	require.NoError(t, removeStale(parent))
	entries := func() (out []string) {
		found, err := os.ReadDir(parent)
		require.NoError(t, err)
		for _, e := range found {
			out = append(out, e.Name())
		}
		return out
	}
	want := []string{"machineadm-2", "machineadm-run-file", "machineadm-run-link", "run-3"}
	assert.ElementsMatch(t, append(want, filepath.Base(held)), entries())
	p.close()
	assert.ElementsMatch(t, want, entries())
	assert.DirExists(t, outside)
	assert.NoError(t, removeStale(filepath.Join(parent, "missing")))
}

// TestTemporaryAmongRunsThatCleanUp: a directory that another run takes for a leftover, before it is locked, is made again.
func TestTemporaryAmongRunsThatCleanUp(t *testing.T) {
	parent := t.TempDir()
	t.Setenv("TMPDIR", parent)
	var runs, others sync.WaitGroup
	var done atomic.Bool
	for range 2 {
		others.Go(func() {
			for !done.Load() {
				assert.NoError(t, removeStale(parent))
			}
		})
	}
	for range 4 {
		runs.Go(func() {
			for range 100 {
				p := &place{log: slog.New(slog.DiscardHandler)}
				dir, err := p.temporary(maxPath)
				if assert.NoError(t, err) {
					assert.DirExists(t, dir)
				}
				p.close()
			}
		})
	}
	runs.Wait()
	done.Store(true)
	others.Wait()
	left, err := os.ReadDir(parent)
	require.NoError(t, err)
	assert.Empty(t, left)
}
