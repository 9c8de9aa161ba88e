package cli

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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
