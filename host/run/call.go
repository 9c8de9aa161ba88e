package run

import (
	"context"
	"errors"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run/values"
)

// stopInterval is the time between two Stop requests to a plugin that has not ended its Apply.
const stopInterval = time.Second

// The causes of an early end of Apply, besides the end of the run's context.
var (
	errTimedOut = errors.New("the document exceeded its limit")
	errUnsaved  = errors.New("the report cannot be saved")
)

// call runs Apply until end, and ends it early when the run is interrupted.
func (r *runner) call(ctx context.Context, p values.Planned, res values.Result, end time.Time) (values.Result, error) {
	request, err := r.request(p.Doc, res.By)
	if err != nil {
		return res, err
	}
	request.TimeLeft = time.Until(end)
	r.log.Debug("apply started", "document", p.Label(), "plugin", res.By.Binary)
	// The call outlives the run's deadline by the grace, because Stop comes first.
	call, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	s := supervisor{run: r, by: res.By, cancel: cancel, unsaved: make(chan struct{}), done: make(chan struct{})}
	early := make(chan error, 1)
	go func() { early <- s.supervise(ctx, request.TimeLeft) }()
	began := time.Now()
	l := &listener{run: r, doc: p.Doc, result: res, started: map[string]started{}, failed: s.unsaved}
	quiet := values.Repeat(values.WaitLook, l.beat)
	finished, err := res.By.Plugin.Apply(call, request, 0, l.receive)
	quiet()
	close(s.done)
	cause := <-early
	res = l.close(err == nil && finished.Error != nil)
	r.log.Debug("apply ended", "document", p.Label(), "took", time.Since(began))
	if err == nil && l.failure == nil { // Apply ended in order
		l.failure = r.dropRequests(p)
	}
	switch {
	case l.failure != nil:
		return res, l.failure
	case cause != nil && (err != nil || finished.Stopped):
		if errors.Is(cause, errTimedOut) {
			return res, p.TimedOut(res.By)
		}
		return res, r.contextEnded(cause)
	case values.Expired(err):
		return res, p.FromPlugin(res.By, values.SelfCancelled(err))
	case err != nil:
		return res, p.FromPlugin(res.By, err)
	case finished.Error != nil && finished.Error.Code == pluginv1.CodeRetry:
		return res, finished.Error
	case finished.Error != nil:
		return res, p.FromPlugin(res.By, finished.Error)
	case finished.Stopped:
		return res, p.FromPlugin(res.By, &pluginv1.Error{Message: "the plugin stopped without a Stop request"})
	case len(finished.Deferred) > 0:
		return res.DeferLive(finished.Deferred), nil
	case res.Changed():
		return res.End(report.Changed, ""), nil
	default:
		return res.End(report.Unchanged, ""), nil
	}
}

// withinLimit returns the error of a part of the document's turn: that of its limit, if it is this that ended the part, and not
// the limit of the run.
func withinLimit(ctx context.Context, p *values.Planned, err error) error {
	if values.EndsRun(err) && values.AsProblems(err)[0].Err.Code == report.CodeDeadline && errors.Is(context.Cause(ctx), errTimedOut) {
		return p.TimedOut(p.Result.By)
	}
	return err
}

// supervisor ends an Apply early if necessary: with Stop, so that the plugin finishes its current change, and after the
// grace by cancelling the call and killing the plugin.
type supervisor struct {
	run     *runner
	by      *values.Candidate
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
			_ = s.by.Plugin.Stop(grace) // the grace ends an Apply that ignores Stop
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
		s.by.Plugin.Kill()
		return
	}
}
