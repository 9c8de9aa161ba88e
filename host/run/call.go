package run

import (
	"context"
	"errors"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// stopEvery is how often a plugin that is still at work is asked to stop.
const stopEvery = time.Second

// Why an Apply is ended early, besides an interruption and the deadline of the run.
var (
	errTooLong = errors.New("the document is overdue")
	errUnkept  = errors.New("the report cannot be kept")
)

// call runs Apply until end, or ends it in order when the run is interrupted.
func (r *runner) call(ctx context.Context, p planned, res result, end time.Time) (result, error) {
	request, err := r.request(p.doc, p.by)
	if err != nil {
		return res, err
	}
	request.TimeLeft = time.Until(end)
	began := time.Now()
	r.log.Debug("apply started", "document", p.label(), "plugin", p.by.binary)
	call, watch := r.watch(ctx, p.by, request.TimeLeft)
	l := &listener{run: r, doc: p.doc, result: res, begun: map[string]time.Time{}, unkept: watch.unkept}
	finished, err := p.by.plugin.Apply(call, request, 0, l.take)
	cause := watch.end()
	res = l.abandon(err == nil && finished.Error != nil)
	r.log.Debug("apply ended", "document", p.label(), "took", time.Since(began))
	limit := ApplyTimeout
	if p.Timeout > 0 {
		limit = p.Timeout
	}
	if err == nil && l.stateErr == nil { // Apply has ended in order
		l.stateErr = r.dropRequests(p)
	}
	switch {
	case l.stateErr != nil:
		return res, l.stateErr
	case cause != nil && (err != nil || finished.Stopped):
		if errors.Is(cause, errTooLong) {
			return res, p.tooLong(p.by, limit)
		}
		return res, r.overdue(cause)
	case expired(err):
		return res, p.fromPlugin(p.by, unprompted(err))
	case err != nil:
		return res, p.fromPlugin(p.by, err)
	}
	switch {
	case finished.Error != nil && finished.Error.Code == pluginv1.CodeRetry:
		return res, finished.Error
	case finished.Error != nil:
		return res, p.fromPlugin(p.by, finished.Error)
	case finished.Stopped:
		return res, p.fromPlugin(p.by, &pluginv1.Error{Message: "the plugin stopped early without having been asked to"})
	case len(finished.Deferred) > 0:
		return r.deferLive(res, finished.Deferred), nil
	case res.changed():
		return res.end(report.Changed, ""), nil
	default:
		return res.end(report.Unchanged, ""), nil
	}
}

// watcher ends an Apply early when it must: first by Stop, so that the change in hand is finished, and after a grace
// by cancelling the call, which the plugin's death follows.
type watcher struct {
	cancel context.CancelFunc
	unkept chan struct{} // receives when the state cannot be kept any more
	done   chan struct{} // closed by end
	result chan error    // why it was ended early, or nil
}

// watch returns the context of the call to watch over.
func (r *runner) watch(ctx context.Context, by *candidate, limit time.Duration) (context.Context, *watcher) {
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
			cause = errTooLong
		case <-w.unkept:
			cause = errUnkept
		case <-r.o.Interrupt:
			cause = context.Canceled
		case <-ctx.Done():
			cause = ctx.Err()
		}
		r.stop(ctx, by, w)
		w.result <- cause
	}()
	return call, w
}

// stop asks the plugin to end, waits for the grace, then kills it. Cancelling the run's ctx ends the grace: the end was
// asked for a second time.
func (r *runner) stop(ctx context.Context, by *candidate, w *watcher) {
	grace := time.NewTimer(r.o.Grace)
	defer grace.Stop()
	asked, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.o.Grace)
	defer cancel()
	go func() {
		for { // again and again: a Stop that overtakes the call it is meant for stops nothing
			_ = by.plugin.Stop(asked) // a plugin that does not answer is what the grace is for
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
		by.plugin.Kill()
		return
	}
}

// end ends the watch after Apply has returned, and returns why the Apply was ended early, if it was.
func (w *watcher) end() error {
	close(w.done)
	cause := <-w.result
	w.cancel()
	return cause
}
