package controller

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func asked(namespace string, n int) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(n)}}
}

// TestNoTenantHoldsAllWorkers: 2,000 requests of a namespace, whose reconciliations hang, hold their share of the workers. One of another
// namespace behind them in the queue is reconciled at once. All of them are reconciled, once, when they do not hang any more.
func TestNoTenantHoldsAllWorkers(t *testing.T) {
	t.Parallel()
	const workers, hostile = 16, 2000
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	turns, hang, done := newTurns(workers), make(chan struct{}), make(chan string, hostile+1)
	for i := range hostile {
		q.Add(asked("hostile", i))
	}
	q.Add(asked("victim", 0))
	for range workers {
		go func() {
			for request, ended := q.Get(); !ended; request, ended = q.Get() {
				if turn := turns.begin(request); turn != nil {
					if request.Namespace == "hostile" {
						<-hang
					}
					done <- request.Namespace
					if next, parked := turn.end(); parked {
						q.Add(next)
					}
				}
				q.Done(request)
			}
		}()
	}
	next := func() string {
		select {
		case namespace := <-done:
			return namespace
		case <-time.After(time.Minute):
			require.Fail(t, "nothing is reconciled any more")
			return ""
		}
	}
	require.Equal(t, "victim", next())
	close(hang)
	for range hostile {
		require.Equal(t, "hostile", next())
	}
	assert.Eventually(t, func() bool {
		turns.mu.Lock()
		defer turns.mu.Unlock()
		return len(turns.byNamespace) == 0
	}, time.Minute, time.Millisecond)
}

// TestOneLargeOfANamespace: a second large reconciliation of a namespace waits, one of another namespace does not, and a fifth namespace
// waits for the first.
func TestOneLargeOfANamespace(t *testing.T) {
	t.Parallel()
	turns := newTurns(64)
	large := func(namespace string, n int) (*turn, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		turn := turns.begin(asked(namespace, n))
		return turn, turn.wait(ctx)
	}
	first, err := large("a", 0)
	require.NoError(t, err)
	require.NoError(t, first.wait(t.Context()), "twice is once")
	second, err := large("a", 1)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	for _, namespace := range []string{"b", "c", "d"} {
		_, err := large(namespace, 0)
		require.NoError(t, err)
	}
	fifth, err := large("e", 0)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	first.release()
	require.NoError(t, fifth.wait(t.Context()))
	fifth.end()
	require.NoError(t, second.wait(t.Context()))
	second.end()
	first.end()
}
