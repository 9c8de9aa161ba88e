package session

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/state"
)

// TestWhatIsKept: a boot sets neither the directory nor the proxies of the first run.
func TestWhatIsKept(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://user:c4n4ry@now:3128")
	t.Setenv("PATH", "/srv/bin")
	s := &Session{o: Options{PluginDirs: []string{"relative"}, PluginsOnPath: true}}
	kept, err := s.pending(run.Options{Stream: &document.Stream{File: "x"}, Text: []byte("y"), Timeout: time.Hour}, report.Report{Phase: "all", BootID: "b", StreamDigest: "g"})
	require.NoError(t, err)
	here, err := os.Getwd()
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(here, "relative"), kept.PluginDirs[0])
	assert.Equal(t, []string{"/srv/bin", "b", "g"}, []string{kept.PluginPath, kept.BootID, kept.StreamDigest})
	assert.Contains(t, kept.Proxies, "HTTP_PROXY=http://now:3128")

	t.Setenv("PATH", "/usr/bin")
	store, err := state.Open(t.TempDir(), "machine")
	require.NoError(t, err)
	require.NoError(t, store.KeepPending(state.Pending{
		StreamDigest: "g", BootID: "b", File: "/run/gone.yaml", Phase: "all", Timeout: run.RunTimeout, PluginDirs: []string{"/plugins"}, Stream: []byte("kind: X\n"),
		Proxies: []string{"https_proxy=http://kept:3128", "HTTP_PROXY=http://kept:3128"},
	}))
	s = &Session{o: Options{Timeout: run.RunTimeout}, store: store}
	var in Input
	require.NoError(t, s.recall(&in))
	assert.Equal(t, Input{Path: "/run/gone.yaml", Phase: "all", Reboot: true}, in)
	assert.Equal(t, "/run/gone.yaml", s.stream.File)
	assert.Equal(t, []string{"/plugins"}, s.o.PluginDirs)
	assert.False(t, s.o.PluginsOnPath)
	for name, want := range map[string]string{"https_proxy": "http://kept:3128", "HTTP_PROXY": "http://user:c4n4ry@now:3128"} {
		got, _ := s.lookupEnv(name)
		assert.Equal(t, want, got, name)
	}
	_, found := s.lookupEnv("no_such_proxy")
	assert.False(t, found)
}

// TestResumedRunKeepsTheProgramsDirectory, also when another machineadm resumes it.
func TestResumedRunKeepsTheProgramsDirectory(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ named, want []string }{
		{nil, []string{"/build"}},
		{[]string{"/first"}, []string{"/first", "/build"}},
		{[]string{"/build", "/first"}, []string{"/build", "/first"}},
	} {
		s := &Session{o: Options{PluginDirs: test.named, Beside: "/build"}}
		kept, err := s.pending(run.Options{Stream: &document.Stream{}}, report.Report{})
		require.NoError(t, err)
		assert.Equal(t, test.want, kept.PluginDirs)
	}
}
