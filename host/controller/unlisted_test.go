package controller

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestUnlisted: only the first reconciliation waits for a kind that cannot be listed. When it can be, its readers are woken once.
func TestUnlisted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kind := schema.GroupKind{Group: "example.com", Kind: "HTTPProxy"}
		u := unlisted{kinds: map[schema.GroupKind]struct{}{}, stop: t.Context().Done()}
		var synced atomic.Bool
		woken := make(chan schema.GroupKind, 2)
		listed := func() (bool, time.Duration) {
			began := time.Now()
			return u.listed(t.Context(), kind, synced.Load, func(k schema.GroupKind) { woken <- k }), time.Since(began)
		}
		for _, wait := range []time.Duration{syncLimit, 0, 0} {
			ok, took := listed()
			assert.False(t, ok)
			assert.Equal(t, wait, took)
		}
		assert.Empty(t, woken)
		synced.Store(true)
		assert.Equal(t, kind, <-woken)
		ok, took := listed()
		assert.True(t, ok)
		assert.Zero(t, took)
		synctest.Wait()
		assert.Empty(t, woken)
		assert.Empty(t, u.kinds)
	})
}
