package state

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

func TestChoices(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	store := opened(t, dir, "machine-1")
	for _, c := range [][2]string{{"Timesync/a", "chronyd"}, {"Timesync/b", "ntpd"}, {"Timesync/a", "systemd"}} {
		require.NoError(t, store.Choose(c[0], c[1]))
	}
	got, err := opened(t, dir, "machine-1").Choices()
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"Timesync/a": "systemd", "Timesync/b": "ntpd"}, got, "each document has its own")
}

func TestDamagedChoices(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"empty": "", "half": `{"Sysctl/a":`, "a list": `["Sysctl/a"]`, "null": "null", "no name": `{"Sysctl":"procfs"}`,
		"a path": `{"Sysctl/a":"../../tmp/x"}`, "a kind that is none": `{"sysctl x/a":"procfs"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "state")
			store := opened(t, dir, "machine-1")
			path := filepath.Join(dir, choicesFile)
			write(t, path, content, 0o600)
			_, err := store.Choices()
			wantState(t, err, path, "remove it")
			assert.NotContains(t, err.Error(), "/tmp/x", "it quotes the value")
			wantState(t, store.Choose("Timesync/a", "chronyd"), path)
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, content, string(data))
		})
	}
}

func TestRequestedReboots(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	in := func(boot string) *Reboots { return opened(t, dir, "machine-1").Reboots(boot) }
	requests := func(boot string) []Request {
		got, err := in(boot).Requests()
		require.NoError(t, err)
		return got
	}
	want := []Request{
		{Document: "Thing/a", When: pluginv1.RebootAfterRun, Asked: true}, {Document: "Thing/b", When: pluginv1.RebootBeforeNext},
	}
	assert.Empty(t, requests("boot-1"))
	require.NoError(t, in("boot-1").Keep(want))
	assert.Equal(t, want, requests("boot-1"))
	assert.Empty(t, requests("boot-2"), "a reboot has happened")
	assert.Empty(t, requests(""), "a boot without an ID")
	require.NoError(t, in("boot-1").Forget())
	assert.Equal(t, want, requests("boot-1"), "only a reboot ends a request")
	require.NoError(t, in("boot-2").Forget())
	assert.NoFileExists(t, filepath.Join(dir, rebootsFile))

	require.NoError(t, in("boot-2").Keep(want))
	require.NoError(t, in("boot-2").Keep(nil), "the only change that asked was not begun")
	assert.Empty(t, requests("boot-2"))
	require.NoError(t, in("boot-2").Keep(want))
	_, err := in("boot-2").Count("a")
	require.NoError(t, err)
	require.NoError(t, in("boot-3").Keep(nil))
	n, err := in("boot-3").Count("a")
	require.NoError(t, err)
	assert.Equal(t, 2, n, "the count stays")
}

func TestReboots(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	for _, step := range []struct {
		boot, streamDigest string
		want               int
	}{
		{"1", "a", 1}, {"1", "a", 1}, {"2", "a", 2}, {"3", "a", 3}, {"3", "b", 1}, {"4", "b", 2}, {"5", "a", 1}, {"", "", 0}, {"6", "a", 1},
	} {
		r := opened(t, dir, "machine-1").Reboots(step.boot)
		if step.streamDigest == "" {
			require.NoError(t, r.Forget())
			continue
		}
		got, err := r.Count(step.streamDigest)
		require.NoError(t, err)
		assert.Equal(t, step.want, got, "boot %s, stream %s", step.boot, step.streamDigest)
	}
	for _, content := range []string{"", "{}", "[1]", `{"count":-1}`, `{"count":"x"}`, `{"requests":[{"document":"a"}]}`} {
		path := filepath.Join(dir, rebootsFile)
		write(t, path, content, 0o600)
		_, err := opened(t, dir, "machine-1").Reboots("7").Count("a")
		wantState(t, err, path, "remove it")
	}
}

func FuzzKeptReboots(f *testing.F) {
	f.Add([]byte(`{"bootID":"b","requests":[{"document":"Thing/a","when":"AfterRun","asked":true}],"count":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if kept, err := parseReboots(data); err == nil && kept.Count == 0 {
			require.NotEmpty(t, kept.Requests)
		}
	})
}
