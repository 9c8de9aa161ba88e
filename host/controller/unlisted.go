package controller

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// syncLimit is how long a reconciliation waits for the objects of a kind that was not watched before.
const syncLimit = 5 * time.Second

// unlisted are the kinds whose objects did not come within syncLimit.
type unlisted struct {
	mu    sync.Mutex
	kinds map[schema.GroupKind]struct{}
	// stop is closed when the manager ends.
	stop <-chan struct{}
}

// listed says whether the objects of a kind are there. Only the first reconciliations wait for them. They come when the manager
// may list them; woken is called then.
func (u *unlisted) listed(ctx context.Context, kind schema.GroupKind, synced func() bool, woken func(schema.GroupKind)) bool {
	if synced() || !u.has(kind) && u.wait(ctx, synced) {
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, known := u.kinds[kind]; !known && ctx.Err() == nil {
		u.kinds[kind] = struct{}{}
		go func() {
			if !cache.WaitForCacheSync(u.stop, synced) {
				return
			}
			u.mu.Lock()
			delete(u.kinds, kind)
			u.mu.Unlock()
			woken(kind)
		}()
	}
	return false
}

func (u *unlisted) has(kind schema.GroupKind) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, known := u.kinds[kind]
	return known
}

func (u *unlisted) wait(ctx context.Context, synced func() bool) bool {
	limited, cancel := context.WithTimeout(ctx, syncLimit)
	defer cancel()
	return cache.WaitForCacheSync(limited.Done(), synced)
}
