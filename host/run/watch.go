package run

import (
	"context"
	"errors"
	"time"
)

// stopEvery is how often a plugin that goes on is asked to stop.
const stopEvery = time.Second

// Why an Apply is ended early, besides an interruption and the deadline of the run.
var (
	errOverdue = errors.New("the document is overdue")
	errUnkept  = errors.New("the report cannot be kept")
)

// watcher ends an Apply early when it must: first by Stop, so that the change in hand is finished, and after a grace
// by cancelling the call, which the plugin's death follows.
type watcher struct {
	cancel context.CancelFunc
	unkept chan struct{} // gets something when the report cannot be kept any more
	done   chan struct{} // closed by end
	result chan error    // why it was ended early, or nil
}

// watch returns the context of the call to watch over.
func (r *run) watch(ctx context.Context, it *item, limit time.Duration) (context.Context, *watcher) {
	// The call itself must outlive the run's own deadline by the grace: Stop comes first.
	call, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &watcher{cancel: cancel, unkept: make(chan struct{}, 1), done: make(chan struct{}), result: make(chan error, 1)}
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
		case <-w.unkept:
			cause = errUnkept
		case <-r.o.Interrupt:
			cause = context.Canceled
		case <-ctx.Done():
			cause = ctx.Err()
		}
		r.stop(ctx, it, w)
		w.result <- cause
	}()
	return call, w
}

// stop asks the plugin to end, waits for the grace, then kills it. Cancelling the run's ctx ends the grace: somebody
// has asked a second time.
func (r *run) stop(ctx context.Context, it *item, w *watcher) {
	grace := time.NewTimer(r.o.Grace)
	defer grace.Stop()
	asked, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.o.Grace)
	defer cancel()
	go func() {
		for { // again and again: a Stop that overtakes the call it is meant for stops nothing
			_ = it.plugin.Stop(asked) // a plugin that does not answer is what the grace is for
			select {
			case <-w.done:
				return
			case <-asked.Done():
				return
			case <-time.After(stopEvery):
			}
		}
	}()
	for ended := ctx.Done(); ; ended = nil { // it ends once, and its deadline is no hurry
		select {
		case <-w.done:
			return
		case <-ended:
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				continue
			}
		case <-grace.C:
		}
		w.cancel()
		it.plugin.Kill()
		return
	}
}

// end tells the watcher that Apply has returned, and returns why it was ended early, if it was.
func (w *watcher) end() error {
	close(w.done)
	cause := <-w.result
	w.cancel()
	return cause
}
