package sdk

import (
	"context"
	"sync"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// Apply implements pluginv1.Configurator. It plans again, from what the machine is now, so that it can be repeated
// after a crash at any point.
func (s *configurator) Apply(
	ctx context.Context, r pluginv1.Request, limit int, send func(pluginv1.Event) error,
) (pluginv1.Finished, error) {
	s.applying.Lock()
	defer s.applying.Unlock()
	stop := s.arm()
	defer s.disarm()

	var finished pluginv1.Finished
	err := s.planned(ctx, r, &claims{}, func(m Machine, plan Plan) error {
		out := &events{send: send}
		for _, w := range plan.Warnings {
			out.emit(w)
		}
		var err error
		finished, err = carryOut(ctx, m, plan, limit, stop, out)
		return err
	})
	return finished, err
}

func carryOut(
	ctx context.Context, m Machine, plan Plan, limit int, stop <-chan struct{}, out *events,
) (pluginv1.Finished, error) {
	var finished pluginv1.Finished
	done := 0
	for _, c := range plan.Changes {
		if m.Offline() && c.NeedsLive {
			finished.Deferred = append(finished.Deferred, wireChange(c))
			continue
		}
		if stopped(stop) || (limit > 0 && done >= limit) {
			finished.Stopped = true
			return finished, nil
		}
		if err := ctx.Err(); err != nil {
			return finished, err
		}
		out.emit(pluginv1.Started{Change: wireChange(c)})
		if err := out.failed(); err != nil { // a host that is gone must not find more changed than it heard of
			return finished, err
		}
		if err := c.Do(ctx, &progress{id: c.ID, out: out}); err != nil {
			return finished, classify(ctx, err)
		}
		out.emit(pluginv1.Changed{ID: c.ID})
		done++
	}
	return finished, out.failed()
}

// Stop implements pluginv1.Configurator.
func (s *configurator) Stop(context.Context) error {
	s.stopping.Lock()
	defer s.stopping.Unlock()
	if s.stop != nil {
		close(s.stop)
		s.stop = nil
	}
	return nil
}

func (s *configurator) arm() <-chan struct{} {
	s.stopping.Lock()
	defer s.stopping.Unlock()
	s.stop = make(chan struct{})
	return s.stop
}

func (s *configurator) disarm() {
	s.stopping.Lock()
	defer s.stopping.Unlock()
	s.stop = nil
}

func stopped(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// events sends in order, also from several goroutines of one change, and keeps the first failure.
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
