package state

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/atomicfile"
	requires "github.com/machineadm/machineadm/internal/require"
)

// plant creates a file and its parent directories.
func plant(t *testing.T, path string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte("PRIVATE KEY"), 0o600))
}

// names lists the files, links and other nodes below dir.
func names(t *testing.T, dir string) []string {
	t.Helper()
	out := []string{}
	require.NoError(t, filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			at, err = filepath.Rel(dir, at)
			out = append(out, at)
		}
		return err
	}))
	return out
}

// TestWritesOfAKilledRun: any later run removes the leftovers of a killed run beside its recorded paths, and nothing else.
func TestWritesOfAKilledRun(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	root := t.TempDir()
	killed := NewWrites(root, t.TempDir())
	recorded := []string{
		"/etc/app/key", "/etc/link", "/etc/out", "/etc/new/file", "/etc/taken", "/etc/loop", "/etc/full",
		"relative", "/nul\x00", "/", "", "/etc/../etc/up",
	}
	require.NoError(t, killed.Record(recorded[:2]))
	require.NoError(t, killed.Record(recorded))
	for _, name := range []string{
		"etc/app/.key.machineadm-tmp", "etc/app/.key.machineadm-candidate", "etc/app/..key.machineadm-candidate.machineadm-tmp",
		"srv/.real.machineadm-tmp", "etc/.up.machineadm-tmp", "etc/machineadm/..pending.machineadm-tmp",
		"etc/machineadm/.choices.json.machineadm-tmp",
	} {
		plant(t, filepath.Join(root, name))
	}
	stay := []string{"etc/app/.other.machineadm-tmp", "etc/app/key", "etc/app/key.machineadm-tmp"}
	for _, name := range stay {
		plant(t, filepath.Join(root, name))
	}
	plant(t, filepath.Join(outside, ".file.machineadm-tmp"))
	for name, to := range map[string]string{
		"etc/link": "../srv/real", "etc/out": outside + "/file", "etc/loop": "loop", "etc/.full.machineadm-tmplink": "x",
	} {
		require.NoError(t, os.Symlink(to, filepath.Join(root, name)))
	}
	require.NoError(t, unix.Mkfifo(filepath.Join(root, "etc/.taken.machineadm-tmp"), 0o600))
	info, err := os.Stat(filepath.Join(root, ImageWrites))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode())

	require.NoError(t, NewWrites(root, t.TempDir()).CleanUp())
	assert.ElementsMatch(t, append(stay, "etc/link", "etc/out", "etc/loop", "etc/.taken.machineadm-tmp"), names(t, root))
	assert.Equal(t, []string{".file.machineadm-tmp"}, names(t, outside))
}

// TestWritesOfTheMachine covers the state directory, the files of the host itself, and the leftovers of a killed bake.
func TestWritesOfTheMachine(t *testing.T) {
	t.Parallel()
	root, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	live := func() *Writes {
		w := NewWrites("", state, filepath.Join(root, "run/report.json"))
		w.records[1] = filepath.Join(root, "pending") // not of the machine that runs the tests
		return w
	}
	require.NoError(t, live().CleanUp(), "nothing is there")
	require.NoError(t, os.Mkdir(state, 0o700))
	killed := live()
	require.NoError(t, killed.Record([]string{filepath.Join(root, "live")}))
	plant(t, filepath.Join(root, ".live.machineadm-tmp"))
	plant(t, filepath.Join(root, "run/.report.json.machineadm-tmp"))
	plant(t, filepath.Join(state, ".bindings.json.machineadm-tmp"))
	plant(t, filepath.Join(state, "plugins/a/b/.intent.machineadm-tmp"))
	plant(t, filepath.Join(state, "plugins/a/b/intent"))
	bake := NewWrites("", state)
	bake.records = []string{filepath.Join(root, "pending")}
	require.NoError(t, bake.Record([]string{filepath.Join(root, "baked")}))
	plant(t, filepath.Join(root, ".baked.machineadm-tmp"))
	clone, err := Open(state, "another-machine")
	require.NoError(t, err)
	plant(t, filepath.Join(clone.Dir(), "plugins/a/b/intent"))

	require.NoError(t, live().CleanUp())
	assert.Empty(t, names(t, root))
	assert.ElementsMatch(t, []string{"machine-id", "plugins/a/b/intent"}, names(t, state))
}

// TestWritesOfALiveWriter: a locked temporary file belongs to a running process.
func TestWritesOfALiveWriter(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	temporary := filepath.Join(root, ".f.machineadm-tmp")
	plant(t, temporary)
	file, err := os.Open(temporary)
	require.NoError(t, err)
	require.NoError(t, unix.Flock(int(file.Fd()), unix.LOCK_EX))
	w := NewWrites(root, t.TempDir())
	require.NoError(t, w.Record([]string{"/f"}))
	require.NoError(t, w.CleanUp())
	assert.FileExists(t, temporary)
	require.NoError(t, file.Close())
}

// TestWritesRecordOnce: only a new path is written.
func TestWritesRecordOnce(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	w := NewWrites(root, t.TempDir())
	record := filepath.Join(root, ImageWrites)
	require.NoError(t, w.Record(nil))
	assert.NoFileExists(t, record)
	require.NoError(t, w.Record([]string{"/b", "/a"}))
	first, err := os.Stat(record)
	require.NoError(t, err)
	require.NoError(t, w.Record([]string{"/a"}))
	second, err := os.Stat(record)
	require.NoError(t, err)
	assert.True(t, os.SameFile(first, second))
	require.NoError(t, w.Clear())
	assert.NoFileExists(t, record)
	require.NoError(t, w.Record([]string{"/a"}))
	assert.FileExists(t, record)
}

func TestDamagedWrites(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"no JSON": "{", "another form": `{"version": 0}`, "later": `{"version": 2}`, "another type": `{"version": 1, "paths": "/etc/x"}`,
	} {
		root := t.TempDir()
		record := filepath.Join(root, ImageWrites)
		plant(t, record)
		require.NoError(t, os.WriteFile(record, []byte(data), 0o600))
		w := NewWrites(root, t.TempDir())
		want := "is damaged"
		if name == "later" {
			want = "was written by a later release"
		}
		assert.ErrorContains(t, w.CleanUp(), want, name)
		require.NoError(t, w.Record([]string{"/etc/x"}), name)
		assert.NoError(t, w.CleanUp(), name)
	}
}

func FuzzWrites(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"version":1,"paths":["/etc/x","relative",""]}`, `{"version":2}`, "[]", "null"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		root := t.TempDir()
		record := filepath.Join(root, ImageWrites)
		plant(t, record)
		require.NoError(t, os.WriteFile(record, data, 0o600))
		plant(t, filepath.Join(root, "etc/x"))
		if err := NewWrites(root, t.TempDir()).CleanUp(); err == nil {
			assert.NoFileExists(t, record)
		}
		assert.FileExists(t, filepath.Join(root, "etc/x"))
	})
}

// TestErrorsNameThePathOfTheImage: errors contain the path as this process sees it.
func TestErrorsNameThePathOfTheImage(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(root string) error{
		"choices": func(root string) error { return (&Store{}).ForImage(root, nil).Choose("Motd/a", "file") },
		"record":  func(root string) error { return NewWrites(root, t.TempDir()).Record([]string{"/etc/motd"}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			inTheWay := filepath.Join(root, "etc/machineadm")
			require.NoError(t, os.Mkdir(filepath.Join(root, "etc"), 0o755))
			require.NoError(t, os.WriteFile(inTheWay, nil, 0o600))
			err := write(root)
			require.ErrorIs(t, err, ErrState)
			require.ErrorContains(t, err, inTheWay+": ")
		})
	}
}

// TestChoosable: what keeps an image from taking choices shows before they are saved, without a change.
func TestChoosable(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		build func(t *testing.T, at string) error
		err   error
	}{
		"no directory":      {func(*testing.T, string) error { return nil }, nil},
		"a directory":       {func(_ *testing.T, at string) error { return os.Mkdir(at, 0o755) }, nil},
		"a file":            {func(_ *testing.T, at string) error { return os.WriteFile(at, nil, 0o600) }, unix.ENOTDIR},
		"a dangling link":   {func(_ *testing.T, at string) error { return os.Symlink("/nowhere", at) }, unix.ENOENT},
		"a circle of links": {func(_ *testing.T, at string) error { return os.Symlink("machineadm", at) }, unix.ELOOP},
		"none, in an immutable one": {func(t *testing.T, at string) error {
			etc, chattr := filepath.Dir(at), requires.Tool(t, "chattr")
			if err := exec.CommandContext(t.Context(), chattr, "+i", etc).Run(); err != nil {
				requires.Missing(t, "this file system has no such attributes: "+err.Error())
			}
			t.Cleanup(func() { assert.NoError(t, exec.CommandContext(context.Background(), chattr, "-i", etc).Run()) })
			return nil
		}, unix.EPERM},
		"a temporary file": {func(_ *testing.T, at string) error {
			return os.MkdirAll(filepath.Join(at, ".choices.json.machineadm-tmp"), 0o755)
		}, atomicfile.ErrForeign},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			at := filepath.Join(root, "etc/machineadm")
			require.NoError(t, os.Mkdir(filepath.Dir(at), 0o755))
			require.NoError(t, tt.build(t, at))
			image := (&Store{}).ForImage(root, nil)
			before := Choosable(root)
			assert.NoFileExists(t, filepath.Join(at, "choices.json"))
			saved := image.Choose("Motd/a", "file")
			if tt.err == nil {
				require.NoError(t, before)
				require.NoError(t, saved)
				return
			}
			require.ErrorIs(t, before, tt.err)
			require.ErrorIs(t, saved, tt.err)
		})
	}
}
