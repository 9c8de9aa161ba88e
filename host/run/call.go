package run

import (
	"context"
	"errors"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// stopInterval is the time between two Stop requests to a plugin that has not ended its Apply.
const stopInterval = time.Second

// The causes of an early end of Apply, besides the end of the run's context.
var (
	errTimedOut = errors.New("the document exceeded its limit")
	errUnsaved  = errors.New("the report cannot be saved")
)

// call runs Apply until end, and ends it early when the run is interrupted.
func (r *runner) call(ctx context.Context, p planned, res result, end time.Time) (result, error) {
	request, err := r.request(p.doc, res.by)
	if err != nil {
		return res, err
	}
	request.TimeLeft = time.Until(end)
	r.log.Debug("apply started", "document", p.label(), "plugin", res.by.binary)
	// The call outlives the run's deadline by the grace, because Stop comes first.
	call, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	s := supervisor{run: r, by: res.by, cancel: cancel, unsaved: make(chan struct{}), done: make(chan struct{})}
	early := make(chan error, 1)
	go func() { early <- s.supervise(ctx, request.TimeLeft) }()
	began := time.Now()
	l := &listener{run: r, doc: p.doc, result: res, started: map[string]started{}, failed: s.unsaved}
	quiet := repeat(waitLook, l.beat)
	finished, err := res.by.plugin.Apply(call, request, 0, l.receive)
	quiet()
	close(s.done)
	cause := <-early
	res = l.close(err == nil && finished.Error != nil)
	r.log.Debug("apply ended", "document", p.label(), "took", time.Since(began))
	if err == nil && l.failure == nil { // Apply ended in order
		l.failure = r.dropRequests(p)
	}
	switch {
	case l.failure != nil:
		return res, l.failure
	case cause != nil && (err != nil || finished.Stopped):
		if errors.Is(cause, errTimedOut) {
			return res, p.timedOut(res.by)
		}
		return res, r.contextEnded(cause)
	case expired(err):
		return res, p.fromPlugin(res.by, selfCancelled(err))
	case err != nil:
		return res, p.fromPlugin(res.by, err)
	case finished.Error != nil && finished.Error.Code == pluginv1.CodeRetry:
		return res, finished.Error
	case finished.Error != nil:
		return res, p.fromPlugin(res.by, finished.Error)
	case finished.Stopped:
		return res, p.fromPlugin(res.by, &pluginv1.Error{Message: "the plugin stopped without a Stop request"})
	case len(finished.Deferred) > 0:
		return res.deferLive(finished.Deferred), nil
	case res.changed():
		return res.end(report.Changed, ""), nil
	default:
		return res.end(report.Unchanged, ""), nil
	}
}

// withinLimit returns the error of a part of the document's turn: that of its limit, if it is this that ended the part, and not
// the limit of the run.
func (p *planned) withinLimit(ctx context.Context, err error) error {
	if endsRun(err) && asProblems(err)[0].err.Code == report.CodeDeadline && errors.Is(context.Cause(ctx), errTimedOut) {
		return p.timedOut(p.result.by)
	}
	return err
}

// supervisor ends an Apply early if necessary: with Stop, so that the plugin finishes its current change, and after the
// grace by cancelling the call and killing the plugin.
type supervisor struct {
	run     *runner
	by      *candidate
	cancel  context.CancelFunc // of the call
	unsaved chan struct{}      // closed when state cannot be saved
	done    chan struct{}      // closed when Apply has returned
}

// supervise returns when Apply has returned or was killed. It returns the cause of an early end, else nil.
func (s *supervisor) supervise(ctx context.Context, limit time.Duration) (cause error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-s.done:
		return nil
	case <-timer.C:
		cause = errTimedOut
	case <-s.unsaved:
		cause = errUnsaved
	case <-s.run.o.Interrupt:
		cause = context.Canceled
	case <-ctx.Done():
		cause = ctx.Err()
	}
	s.stop(ctx)
	return cause
}

// stop requests the end of Apply, waits for the grace, then kills the plugin. Cancelling ctx, a second interruption, ends
// the grace; its deadline does not.
func (s *supervisor) stop(ctx context.Context) {
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.run.o.Grace)
	defer cancel()
	go func() {
		for { // repeatedly, because a Stop that arrives before its Apply has no effect
			_ = s.by.plugin.Stop(grace) // the grace ends an Apply that ignores Stop
			select {
			case <-s.done:
				return
			case <-grace.Done():
				return
			case <-time.After(stopInterval):
			}
		}
	}()
	for ended := ctx.Done(); ; ended = nil { // ctx ends once
		select {
		case <-s.done:
			return
		case <-ended:
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				continue
			}
		case <-grace.Done():
		}
		s.cancel()
		s.by.plugin.Kill()
		return
	}
}
