package plugins

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	needs "github.com/machineadm/machineadm/internal/require"
)

// fixture are the plugins of a directory with one that works and one that is no program.
func fixture(t *testing.T) *Plugins {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "plugins")
	require.NoError(t, os.Mkdir(dir, 0o700))
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, needs.CopyProgram(filepath.Join(dir, naming.Binary("RemoteConfig", "good")), self))
	require.NoError(t, needs.CopyProgram(filepath.Join(dir, naming.Binary("EncryptedConfig", "keyless")), self))
	require.NoError(t, needs.WriteProgram(filepath.Join(dir, naming.Binary("RemoteConfig", "broken")), []byte("no program")))
	p, err := New(Options{Directory: dir, Providers: []string{"good", "broken", "absent", "keyless"}, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return p
}

func (p *Plugins) store(ctx context.Context, namespace, provider, name string) (pid int, err error) {
	err = p.Source(ctx, namespace, provider, func(ctx context.Context, s pluginv1.Source) error {
		stored, err := s.Store(ctx, pluginv1.StoreRequest{Name: name})
		pid, _ = strconv.Atoi(stored.URI)
		return err
	})
	return pid, err
}

func refused(t *testing.T, err error, code, text string) Error {
	t.Helper()
	var failed *Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, code, failed.Code, "%v", err)
	require.Contains(t, err.Error(), text)
	return *failed
}

// TestLives: one process serves all calls, also after one that it refuses. Another follows when it has been killed, and none outlives the manager.
func TestLives(t *testing.T) {
	p := fixture(t)
	first, err := p.store(t.Context(), "a", "good", "x")
	require.NoError(t, err)
	_, err = p.store(t.Context(), "a", "good", "refused")
	refused(t, err, "Precondition", "the store answers 403; remedy: check the key")
	again, err := p.store(t.Context(), "b", "good", "x")
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.NoError(t, syscall.Kill(first, syscall.SIGKILL))
	p.plugin(naming.Binary("RemoteConfig", "good")).began = time.Now().Add(-mostPause) // it has lived for long
	second, err := p.store(t.Context(), "b", "good", "x")
	require.NoError(t, err)
	require.NotEqual(t, first, second)
}

// TestEnds: a process that ends with each call is started after growing pauses, and says so meanwhile.
func TestEnds(t *testing.T) {
	p := fixture(t)
	_, err := p.store(t.Context(), "a", "good", "exit")
	refused(t, err, report.CodeCrashed, "the plugin ended during a call")
	_, err = p.store(t.Context(), "a", "good", "x")
	failed := refused(t, err, report.CodeCrashed, "log of the manager")
	assert.True(t, failed.Waits())
	assert.Positive(t, failed.After)
	assert.LessOrEqual(t, failed.After, firstPause)
	one := p.plugin(naming.Binary("RemoteConfig", "good"))
	for want := 2 * firstPause; want <= 2*mostPause; want *= 2 {
		one.delay()
		assert.Equal(t, min(want, mostPause), one.pause)
	}
}

// TestHangs: a call has a limit. A store that is slow leaves the process alive, and a process that does nothing any more is ended.
func TestHangs(t *testing.T) {
	p := fixture(t)
	first, err := p.store(t.Context(), "a", "good", "x")
	require.NoError(t, err)
	p.limit = 6 * time.Second // a third of it is for the sign of life, on a busy machine
	_, err = p.store(t.Context(), "a", "good", "slow")
	slow := refused(t, err, report.CodeDeadline, "no answer in time")
	assert.True(t, slow.Waits())
	p.limit = time.Minute
	again, err := p.store(t.Context(), "a", "good", "x")
	require.NoError(t, err)
	require.Equal(t, first, again)

	require.NoError(t, syscall.Kill(first, syscall.SIGSTOP))
	require.Eventually(t, func() bool {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", first))
		return err == nil && bytes.Contains(state, []byte(") T "))
	}, needs.Timeout(time.Minute), time.Millisecond)
	p.plugin(naming.Binary("RemoteConfig", "good")).began = time.Now().Add(-mostPause)
	p.limit = time.Second
	_, err = p.store(t.Context(), "a", "good", "x")
	refused(t, err, report.CodeDeadline, "no answer in time")
	p.limit = time.Minute
	second, err := p.store(t.Context(), "a", "good", "x")
	require.NoError(t, err)
	require.NotEqual(t, first, second)
}

// TestRoom: the calls of one namespace do not take the room of another.
func TestRoom(t *testing.T) {
	p := fixture(t)
	_, err := p.store(t.Context(), "a", "good", "x")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var slow sync.WaitGroup
	for range callsOfNamespace {
		slow.Go(func() { _, _ = p.store(ctx, "a", "good", "slow") })
	}
	one := p.plugin(naming.Binary("RemoteConfig", "good"))
	require.Eventually(t, func() bool {
		one.mu.Lock()
		defer one.mu.Unlock()
		return one.total == callsOfNamespace
	}, needs.Timeout(time.Minute), time.Millisecond)
	_, err = p.store(t.Context(), "a", "good", "x")
	assert.Equal(t, Busy, refused(t, err, "Retry", "in work").After)
	_, err = p.store(t.Context(), "b", "good", "x")
	require.NoError(t, err)
	cancel()
	slow.Wait()
	require.Empty(t, one.calls)
	require.Zero(t, one.total)
}

// TestRefused: what is no plugin, and what the manager may not use, has a remedy.
func TestRefused(t *testing.T) {
	p := fixture(t)
	for provider, want := range map[string][2]string{
		"forbidden": {report.CodeNoPlugin, "start the manager with --storage-providers=forbidden"},
		"absent":    {report.CodeNoPlugin, "machineadm-remote-configuration-provider-absent is not installed"},
		"broken":    {report.CodeCrashed, "see its lines in the log of the manager"},
	} {
		_, err := p.store(t.Context(), "a", provider, "x")
		refused(t, err, want[0], want[1])
	}
	err := p.Keys(t.Context(), "a", "keyless", func(context.Context, pluginv1.KeyProvider) error { return errors.New("called") })
	refused(t, err, "Unsupported", "does not have the capability new-passphrase")
}
