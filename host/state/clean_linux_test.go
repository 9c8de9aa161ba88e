package state

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// prepared is an image that a run in it prepared, with every file of a state directory.
func prepared(t *testing.T, machineID string) Prepared {
	t.Helper()
	root := t.TempDir()
	p := Prepared{
		Root: root, StateDir: filepath.Join(root, "var/lib/machineadm"), RunDir: filepath.Join(root, "run/machineadm"),
		MachineID: machineID, BootID: "boot-1",
	}
	store := opened(t, p.StateDir, machineID)
	require.NoError(t, store.Choose("Timesync/a", "chronyd"))
	_, err := store.StreamDigest([]byte("x"))
	require.NoError(t, err)
	for _, name := range []string{WritesFile, DigestsFile, reportsDir + "/1.json", pluginsDir + "/p/d/intent", "release.json"} {
		write(t, filepath.Join(p.StateDir, name), "x", 0o600)
	}
	for _, name := range []string{ReportFile, DetailsFile, earlierFile} {
		write(t, filepath.Join(p.RunDir, name), "x", 0o600)
	}
	return p
}

func TestClean(t *testing.T) {
	t.Parallel()
	p := prepared(t, "machine-1")
	write(t, filepath.Join(p.Root, ImageChoices), `{"Timesync/a":"ntpd","Sysctl/b":"procfs"}`, 0o644)
	require.NoError(t, opened(t, p.StateDir, "machine-1").KeepPending(Pending{StreamDigest: "g", File: "f", Timeout: 1, Stream: []byte("x")}))
	why, reboot, err := p.Unfinished()
	require.NoError(t, err)
	assert.Equal(t, "a run of f waits for its reboot", why)
	assert.True(t, reboot)
	removed, kept, err := p.Clean()
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"Timesync/a": "chronyd", "Sysctl/b": "procfs"}, kept)
	var want []string
	for _, name := range []string{ReportFile, DetailsFile, earlierFile} {
		want = append(want, filepath.Join(p.RunDir, name))
	}
	for _, name := range []string{choicesFile, keyFile, PendingFile, DigestsFile, pluginsDir, reportsDir, machineFile, WritesFile} {
		want = append(want, filepath.Join(p.StateDir, name))
	}
	assert.Equal(t, want, removed)
	left, err := os.ReadDir(p.StateDir)
	require.NoError(t, err)
	require.Len(t, left, 1, "a file of another package is left alone")
	assert.Equal(t, "release.json", left[0].Name())
	removed, again, err := p.Clean()
	require.NoError(t, err)
	assert.Empty(t, removed)
	assert.Equal(t, kept, again)
	image, err := p.imageChoices()
	require.NoError(t, err)
	assert.Equal(t, kept, image)
}

func TestUnfinished(t *testing.T) {
	t.Parallel()
	request := []Request{{Document: "Sysctl/a", When: pluginv1.RebootBeforeNext, Asked: true}}
	for name, c := range map[string]struct {
		prepare func(*Store) error
		why     string
		reboot  bool
	}{
		"complete":           {func(*Store) error { return nil }, "", false},
		"requested":          {func(s *Store) error { return s.Reboots("boot-1").Keep(request) }, "Sysctl/a has requested a reboot", true},
		"in an earlier boot": {func(s *Store) error { return s.Reboots("boot-0").Keep(request) }, "", false},
		"failed": {func(s *Store) error {
			if err := s.KeepPending(Pending{StreamDigest: "g", File: "f", Timeout: 1, Stream: []byte("x")}); err != nil {
				return err
			}
			return s.RestPending()
		}, "a run of f failed after its reboot", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := prepared(t, "machine-1")
			require.NoError(t, c.prepare(opened(t, p.StateDir, "machine-1")))
			why, reboot, err := p.Unfinished()
			require.NoError(t, err)
			assert.Equal(t, c.why, why)
			assert.Equal(t, c.reboot, reboot)
		})
	}
}

// TestCleanOfAnotherMachine: the state of another machine is void, so that nothing of it moves to the image.
func TestCleanOfAnotherMachine(t *testing.T) {
	t.Parallel()
	p := prepared(t, "machine-1")
	require.NoError(t, opened(t, p.StateDir, "machine-1").KeepPending(Pending{StreamDigest: "g", File: "f", Timeout: 1, Stream: []byte("x")}))
	p.MachineID = "machine-2"
	why, _, err := p.Unfinished()
	require.NoError(t, err)
	assert.Empty(t, why)
	removed, kept, err := p.Clean()
	require.NoError(t, err)
	assert.NotEmpty(t, removed)
	assert.Empty(t, kept)
	assert.NoFileExists(t, filepath.Join(p.Root, ImageChoices))
}

func TestCleanRefusesDamage(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"var/lib/machineadm/" + choicesFile, ImageChoices} {
		p := prepared(t, "machine-1")
		path := filepath.Join(p.Root, name)
		write(t, path, "{", 0o600)
		_, _, err := p.Clean()
		wantState(t, err, path, "remove it")
		assert.FileExists(t, filepath.Join(p.StateDir, keyFile), "nothing is removed")
	}
}

// TestBelow: an absolute link leads to a directory of the image.
func TestBelow(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.NoError(t, os.Symlink("/srv/state", filepath.Join(root, "var")))
	got, err := Below(root, "/var/lib/machineadm")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(root, "srv/state/lib/machineadm"), got)
}
