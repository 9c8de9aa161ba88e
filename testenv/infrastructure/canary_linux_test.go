package infrastructure

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// processes looks at the arguments and the environment of every process, on this machine and in its containers, until the result is called,
// which returns those that have one of the secrets.
func processes(t *testing.T, secrets ...string) func() []string {
	t.Helper()
	stop, found := make(chan struct{}), make(chan []string)
	go func() {
		seen := map[string]bool{}
		ticks := time.NewTicker(50 * time.Millisecond)
		defer ticks.Stop()
		for {
			arguments, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			environments, _ := filepath.Glob("/proc/[0-9]*/environ")
			for _, file := range append(arguments, environments...) {
				text, _ := os.ReadFile(file) // the process may have ended
				if slices.ContainsFunc(secrets, func(secret string) bool { return bytes.Contains(text, []byte(secret)) }) {
					seen[strings.ReplaceAll(string(text), "\x00", " ")] = true
				}
			}
			select {
			case <-ticks.C:
			case <-stop:
				found <- slices.Collect(maps.Keys(seen))
				return
			}
		}
	}()
	return func() []string { close(stop); return <-found }
}

// secret checks where a secret of a prepared machine is: in files of the machine whose path matches, which only root can read, and neither in
// its journal nor in its report, nor in an event, a config or the log of the manager.
func (r *rig) secret(t *testing.T, machine, secret, files string) {
	t.Helper()
	const search = `grep -rlF --devices=skip --exclude-dir=proc --exclude-dir=sys --exclude-dir=dev -e "$1" / 2>/dev/null | xargs stat --format="%A %n"`
	said, err := r.Node(machine).Exec(t.Context(), "sh", "-c", search, "sh", secret)
	require.NoError(t, err)
	require.NotEmpty(t, said.Stdout)
	for line := range strings.Lines(said.Stdout) {
		mode, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		assert.Regexp(t, files, path)
		assert.Regexp(t, "^-...------$", mode, path)
	}
	journal, err := r.Node(machine).Exec(t.Context(), "journalctl", "--no-pager", "--output=export")
	require.NoError(t, err)
	last, _ := r.of(machine)
	var events eventsv1.EventList
	require.NoError(t, r.List(t.Context(), &events))
	var configs bootstrap.MachineBootstrapConfigList
	require.NoError(t, r.List(t.Context(), &configs))
	log, err := os.ReadFile(r.manager.Log)
	require.NoError(t, err)
	shown, err := json.Marshal([]any{last, events, configs, string(log), journal.Stdout})
	require.NoError(t, err)
	assert.False(t, bytes.Contains(shown, []byte(secret))) // without the text, which is long
}
