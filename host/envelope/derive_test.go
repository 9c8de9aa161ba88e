package envelope

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// untilDerived returns a context that ends when a derivation has begun.
func untilDerived(t *testing.T, o *Opener) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for len(o.deriving) == 0 && ctx.Err() == nil {
			runtime.Gosched()
		}
		cancel()
	}()
	return ctx
}

// TestInterrupted: Open ends with its context while a key is derived.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	doc := sealed(t, stream)
	doc.Spec.Iterations = "10000000"
	o := NewOpener()
	_, err := o.Open(untilDerived(t, o), doc, passphrase())
	require.ErrorIs(t, err, context.Canceled)
	assert.Len(t, o.deriving, 1, "the derivation, which takes seconds, has not ended")
}

// TestOneDerivation: a derivation whose caller has gone is the only one: others wait for it, as long as their contexts last, and
// cost no goroutine. The next caller gets a result of its own.
func TestOneDerivation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := NewOpener()
		began := make(chan struct{})
		end := make(chan struct{})
		never := func() ([]byte, error) { t.Error("derived without need"); return nil, nil }
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-began; cancel() }()
		_, err := o.key(ctx, func() ([]byte, error) { close(began); <-end; return []byte("dropped"), nil })
		require.ErrorIs(t, err, context.Canceled)
		for range 64 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := o.key(ctx, never)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		close(end)
		key, err := o.key(t.Context(), func() ([]byte, error) { return []byte("key"), nil })
		require.NoError(t, err)
		assert.Equal(t, "key", string(key))
		_, err = o.key(t.Context(), func() ([]byte, error) { return nil, errors.New("refused") })
		require.EqualError(t, err, "refused")
		_, err = o.key(ctx, never)
		require.ErrorIs(t, err, context.Canceled, "of a context that has ended")
	})
}

// TestMemoryOfADerivation: a derivation without a caller does not keep the document.
func TestMemoryOfADerivation(t *testing.T) {
	o := NewOpener()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	func() {
		doc := sealed(t, stream)
		doc.Spec.Iterations, doc.Spec.Ciphertext = "10000000", strings.Repeat("AAAA", 4<<20)
		_, err := o.Open(untilDerived(t, o), doc, passphrase())
		require.ErrorIs(t, err, context.Canceled)
	}()
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Len(t, o.deriving, 1, "it still runs")
	assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(1<<20)) //nolint:gosec // far from the largest number
}
