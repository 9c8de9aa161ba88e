package sdk

import (
	"context"
	"errors"
	"sync"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk/internal/fault"
)

// ErrStopped is the cause with which Stop cancels the context of an interruptible change.
var ErrStopped = errors.New("stopped by machineadm")

// Apply implements pluginv1.Configurator. It plans again from the current state, so that it can be repeated after a crash at
// any point.
func (s *configurator) Apply(
	ctx context.Context, r pluginv1.Request, limit int, send func(pluginv1.Event) error,
) (finished pluginv1.Finished, err error) {
	limited := ctx
	if r.TimeLeft > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, r.TimeLeft)
		defer cancel()
	}
	// Before the wait for another Apply: Stop also ends one that waits.
	stopping, release := s.stoppable(limited)
	defer release()
	s.applying.Lock()
	defer s.applying.Unlock()

	err = s.planned(limited, r, asItIs, &claims{}, func(m Machine, plan Plan) error {
		out := &events{send: send}
		for _, w := range plan.Warnings {
			out.emit(w)
		}
		var err error
		finished, err = makeChanges(limited, stopping, m, plan, limit, out)
		return err
	})
	if ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) && errors.Is(err, context.DeadlineExceeded) {
		// Retry, because the host decides whether there is time for another attempt.
		err = WithDetail(Retry(0, "the time limit of the document has passed: "+err.Error()), fault.Output(err))
	}
	return finished, err
}

// asItIs is the machine for Apply.
func asItIs(m Machine) Machine { return m }

// makeChanges makes the changes. Stop cancels stopping, the context of the interruptible changes.
func makeChanges(
	ctx, stopping context.Context, m Machine, plan Plan, limit int, out *events,
) (pluginv1.Finished, error) {
	var finished pluginv1.Finished
	var now []Change // those that are not deferred
	for _, c := range plan.Changes {
		if m.Offline() && c.NeedsLive {
			finished.Deferred = append(finished.Deferred, wireChange(c))
		} else {
			now = append(now, c)
		}
	}
	for done, c := range now {
		if stopped(stopping) || (limit > 0 && done >= limit) {
			finished.Stopped = true
			return finished, nil
		}
		if err := ctx.Err(); err != nil {
			return finished, err
		}
		out.emit(pluginv1.Started{Change: wireChange(c)})
		if err := out.failed(); err != nil { // the host is gone: every change must be reported before it is made
			return finished, err
		}
		during := ctx
		if c.Interruptible {
			during = stopping
		}
		err := c.Do(during, &progress{id: c.ID, out: out})
		if c.Interruptible && stopped(stopping) && (errors.Is(err, ErrStopped) || errors.Is(err, context.Canceled)) {
			finished.Stopped = true
			return finished, nil
		}
		if err != nil {
			return finished, fault.Classify(ctx, err)
		}
		out.emit(pluginv1.Changed{ID: c.ID})
	}
	return finished, out.failed()
}

// Stop implements pluginv1.Configurator: it stops every Apply that has begun. pluginv1.Stopping stops one that was sent
// before Stop and begins after it.
func (s *configurator) Stop(context.Context) error {
	s.stopping.Lock()
	defer s.stopping.Unlock()
	for _, stop := range s.stops {
		stop(ErrStopped)
	}
	return nil
}

// stoppable returns a context that Stop cancels, and a function that releases it.
func (s *configurator) stoppable(ctx context.Context) (context.Context, func()) {
	requested := pluginv1.Stopping(ctx)
	ctx, stop := context.WithCancelCause(ctx)
	s.stopping.Lock()
	defer s.stopping.Unlock()
	s.stops[ctx] = stop
	if requested.Err() != nil {
		stop(ErrStopped)
	}
	release := context.AfterFunc(requested, func() { stop(ErrStopped) })
	return ctx, func() {
		release()
		stop(nil)
		s.stopping.Lock()
		defer s.stopping.Unlock()
		delete(s.stops, ctx)
	}
}

func stopped(stopping context.Context) bool { return errors.Is(context.Cause(stopping), ErrStopped) }

// events sends events in order, also from several goroutines of one change, and keeps the first error.
type events struct {
	mu   sync.Mutex
	send func(pluginv1.Event) error
	err  error
}

func (e *events) emit(event pluginv1.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = e.send(event)
	}
}

func (e *events) failed() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// progress is the Progress of one change.
type progress struct {
	id  string
	out *events
}

// Report implements Progress.
func (p *progress) Report(message string) { p.out.emit(pluginv1.Progress{ID: p.id, Message: message}) }

// Warn implements Progress.
func (p *progress) Warn(field, message string) {
	p.out.emit(pluginv1.Warning{Field: field, Message: message})
}

// RequestReboot implements Progress.
func (p *progress) RequestReboot(r Reboot) { p.out.emit(pluginv1.Progress{ID: p.id, Reboot: r}) }
