package run

import (
	"context"
	"errors"
	"time"
)

var (
	errOverdue     = errors.New("the document is overdue")
	errInterrupted = errors.New("an interruption was asked for")
)

// watcher ends an Apply early when it must: first by Stop, so that the change in hand is finished, and after a grace
// by cancelling the call, which the plugin's death follows.
type watcher struct {
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed by end
	result chan error    // why it was ended early, or nil
}

func (r *run) watch(ctx context.Context, it *item, limit time.Duration) *watcher {
	// The call itself must outlive the run's own deadline by the grace: Stop comes first.
	callCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &watcher{ctx: callCtx, cancel: cancel, done: make(chan struct{}), result: make(chan error, 1)}
	go func() {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		var cause error
		select {
		case <-w.done:
			w.result <- nil
			return
		case <-timer.C:
			cause = errOverdue
		case <-r.o.Interrupt:
			cause = errInterrupted
		case <-ctx.Done():
			cause = ctx.Err()
		}
		r.stop(it, w)
		w.result <- cause
	}()
	return w
}

// stop asks the plugin to end, waits for the grace, then kills it.
func (r *run) stop(it *item, w *watcher) {
	grace := time.NewTimer(r.o.Grace)
	defer grace.Stop()
	asked, cancel := context.WithTimeout(w.ctx, r.o.Grace)
	defer cancel()
	go func() { _ = it.plugin.Stop(asked) }() // a plugin that does not answer is what the grace is for
	select {
	case <-w.done:
	case <-grace.C:
		w.cancel()
		it.plugin.Kill()
	}
}

// end tells the watcher that Apply has returned, and returns why it was ended early, if it was.
func (w *watcher) end() error {
	close(w.done)
	cause := <-w.result
	w.cancel()
	return cause
}
