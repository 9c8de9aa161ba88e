package state

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOutbox(t *testing.T) {
	t.Parallel()
	wantFull(t, "outgoing", reflect.ValueOf(outgoing()))
	box := OutboxIn(opened(t, filepath.Join(t.TempDir(), "state"), "machine-1").Dir())
	got, err := box.Load()
	require.NoError(t, err)
	require.Nil(t, got)
	require.NoError(t, box.Remove(1), "nothing to remove")
	require.NoError(t, box.Update(outgoing()), "nothing to update")
	require.NoError(t, box.WhenEmpty(func() error { return box.store.save("called", 1) }))
	assert.True(t, exists(t, filepath.Join(box.store.dir, "called")))

	first, err := box.Keep(outgoing(), time.Unix(1000, 5))
	require.NoError(t, err)
	assert.Equal(t, uint64(1000), first.Sequence, "the time")
	for _, name := range []string{OutboxFile, sequence, outboxLock} {
		wantMode(t, filepath.Join(box.store.dir, name), 0o600)
	}
	got, err = box.Load()
	require.NoError(t, err)
	assert.Equal(t, first, *got)
	second, err := box.Keep(outgoing(), time.Unix(999, 0))
	require.NoError(t, err)
	assert.Equal(t, uint64(1001), second.Sequence, "the clock was set back")

	first.Tries = 9
	require.NoError(t, box.Update(first), "an older report does not replace a newer one")
	require.NoError(t, box.Remove(first.Sequence), "nor does its end remove it")
	require.NoError(t, box.WhenEmpty(func() error { return errors.New("called although a report waits") }))
	second.Tries = 5
	require.NoError(t, box.Update(second))
	got, err = box.Load()
	require.NoError(t, err)
	assert.Equal(t, second, *got)
	require.NoError(t, box.Remove(second.Sequence))
	got, err = box.Load()
	require.NoError(t, err)
	assert.Nil(t, got)
	third, err := box.Keep(outgoing(), time.Unix(-5, 0))
	require.NoError(t, err)
	assert.Equal(t, uint64(1002), third.Sequence, "it grows also when no report waited")
	write(t, filepath.Join(box.store.dir, sequence), "damaged", 0o600)
	fourth, err := box.Keep(outgoing(), time.Unix(5000, 0))
	require.NoError(t, err)
	assert.Equal(t, uint64(5000), fourth.Sequence, "the time again")
}

// TestOutboxOfAnotherMachine: a clone never sends the report of the machine that it was made from.
func TestOutboxOfAnotherMachine(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	box := OutboxIn(opened(t, dir, "machine-1").Dir())
	_, err := box.Keep(outgoing(), time.Unix(1, 0))
	require.NoError(t, err)
	opened(t, dir, "machine-2")
	for _, name := range []string{OutboxFile, sequence, outboxLock} {
		assert.False(t, exists(t, filepath.Join(dir, name)), name)
	}
}

func TestDamagedOutbox(t *testing.T) {
	t.Parallel()
	box := OutboxIn(opened(t, filepath.Join(t.TempDir(), "state"), "machine-1").Dir())
	_, err := box.Keep(outgoing(), time.Unix(1, 0))
	require.NoError(t, err)
	path := filepath.Join(box.store.dir, OutboxFile)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for name, text := range map[string][]byte{
		"empty": nil, "truncated": whole[:len(whole)/2], "null": []byte("null"), "wrong type": []byte(`{"version": "` + outboxCanary + `"}`),
		"without the report": []byte(`{"version":1,"sequence":1,"binary":"x","document":{"` + outboxCanary + `":1}}`),
		"a negative age":     bytes.Replace(whole, []byte(`"ageNanoseconds":`), []byte(`"ageNanoseconds":-`), 1),
	} {
		write(t, path, string(text), 0o600)
		got, err := box.Load()
		wantState(t, err, OutboxFile, "remove it")
		assert.Nil(t, got, name)
		assert.NotContains(t, err.Error(), outboxCanary, name)
	}
	write(t, path, `{"version": 2, "report": {"`+outboxCanary+`": 1}}`, 0o600)
	_, err = box.Load()
	wantState(t, err, "was written by a later release of machineadm (version 2, and this release reads 1)")
	_, err = box.Keep(outgoing(), time.Unix(1, 0))
	require.NoError(t, err, "a new report replaces a damaged one")
	_, err = box.Load()
	require.NoError(t, err)
}

// TestOutboxAtOnce: several processes keep, update and remove reports. No number comes twice, and no newer report is lost.
func TestOutboxAtOnce(t *testing.T) {
	t.Parallel()
	box := OutboxIn(opened(t, filepath.Join(t.TempDir(), "state"), "machine-1").Dir())
	var mu sync.Mutex
	var group sync.WaitGroup
	seen := map[uint64]bool{}
	for range 4 {
		group.Go(func() {
			for range 10 {
				o, err := box.Keep(outgoing(), time.Unix(1, 0))
				assert.NoError(t, err)
				mu.Lock()
				assert.False(t, seen[o.Sequence], "the number %d comes twice", o.Sequence)
				seen[o.Sequence] = true
				mu.Unlock()
				assert.NoError(t, box.Remove(o.Sequence-1))
			}
		})
	}
	group.Wait()
	assert.Len(t, seen, 40)
	last, err := box.Load()
	require.NoError(t, err)
	require.NotNil(t, last)
	assert.Equal(t, uint64(40), last.Sequence, "the newest")
}

// TestOutboxKilled: whatever a killed process did, the record is whole, its lock is free, and the numbers grow.
func TestOutboxKilled(t *testing.T) {
	t.Parallel()
	box := OutboxIn(opened(t, filepath.Join(t.TempDir(), "state"), "machine-1").Dir())
	highest := uint64(0)
	for round := range 10 {
		command := exec.Command(os.Args[0])
		command.Env = append(os.Environ(), role+"=send "+box.store.dir)
		require.NoError(t, command.Start())
		start := highest
		deadline := time.Now().Add(20 * time.Second)
		for box.last() <= start+uint64(round) && time.Now().Before(deadline) { //nolint:gosec // small
			_, err := os.Stat(filepath.Join(box.store.dir, OutboxFile))
			require.True(t, err == nil || errors.Is(err, fs.ErrNotExist))
		}
		require.NoError(t, command.Process.Kill())
		require.Error(t, command.Wait())
		got, err := box.Load()
		require.NoError(t, err)
		if got != nil {
			assert.LessOrEqual(t, got.Sequence, box.last())
		}
		o, err := box.Keep(outgoing(), time.Unix(1, 0))
		require.NoError(t, err)
		require.Greater(t, o.Sequence, start)
		highest = o.Sequence
	}
}

func FuzzOutgoing(f *testing.F) {
	f.Add([]byte(`{"version":1,"sequence":1,"document":{},"binary":"x","report":"e30="}`))
	f.Add([]byte(`{"version":1,"sequence":-1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := parseOutgoing(data)
		if (o == nil) == (err == nil) {
			t.Fatalf("%+v and %v", o, err)
		}
		if err == nil && (len(o.Report) == 0 || o.Binary == "") {
			t.Errorf("taken for whole: %+v", o)
		}
	})
}
