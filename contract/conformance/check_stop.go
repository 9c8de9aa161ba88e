package conformance

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

const (
	stopAttempts = 15
	// conclusiveAttempts is the number of times that a plugin may make all changes although Stop was sent while the first
	// was in hand: a call takes time to arrive, and the changes of an image are quick.
	conclusiveAttempts = 8
	// silence is the time without an event after which all that were sent have arrived.
	silence = 30 * time.Millisecond
)

// stops sends Stop at three moments: before an Apply, during its first change, and between its headers and its request.
func stops(ctx context.Context, f *fixture) (result, error) {
	want, err := f.runner.settled(ctx)
	if err != nil {
		return result{}, err
	}
	total := len(want.run.changed())
	if want.reason != "" || total == 0 {
		return notComparable(want, "no change can be made in this image"), nil
	}
	p, err := f.startNew(ctx, usualUmask)
	if err != nil {
		return result{}, err
	}
	for _, moment := range []func(context.Context, *fixture, *plugin, reference) (result, error){
		stopBefore, stopDuring, stopOvertaking,
	} {
		got, err := f.runner.another(func(f *fixture) (result, error) { return moment(ctx, f, p, want) })
		if got.status == Fail || err != nil {
			return got, err
		}
	}
	return passed(), nil
}

// stopDuring sends Stop while the first change is in hand: the plugin is frozen (SIGSTOP) at the first started, Stop is sent,
// and the plugin is thawed (SIGCONT). Most times, Stop then arrives before the plugin is done with the change.
func stopDuring(ctx context.Context, f *fixture, p *plugin, want reference) (result, error) {
	total := len(want.run.changed())
	if !canFreeze || total < 2 {
		return skipped("processes cannot be frozen on this operating system, or fewer than two changes can be made in this image"), nil
	}
	ignored := 0
	for range stopAttempts {
		stopped := false
		got, err := f.runner.another(func(f *fixture) (result, error) {
			attempt, err := f.stopped(ctx, p)
			if err != nil {
				return result{}, err
			}
			if attempt.inHand && !attempt.run.finished.Stopped {
				ignored++
			}
			stopped = attempt.run.finished.Stopped
			return f.checkStop(ctx, want, attempt, total)
		})
		if stopped || got.status != Pass || err != nil {
			return got, err
		}
	}
	if ignored >= conclusiveAttempts {
		return failed(finding{
			clause: "P-27", expected: "after Stop, Apply finishes the change in hand and starts no other one",
			got:   fmt.Sprintf("Stop was sent while the first of %d changes was in hand, %d times, and each time all were made", total, ignored),
			cause: "Stop has no effect on Apply, or is served only after Apply: one thread, or an event loop that Apply blocks",
		}), nil
	}
	return skipped("the changes are made too quickly for a Stop between two of them"), nil
}

// stopBefore calls Stop while nothing is applied, which must not stop the Apply that follows.
func stopBefore(ctx context.Context, f *fixture, p *plugin, want reference) (result, error) {
	wrong := finding{
		clause: "P-28", expected: "a Stop while nothing is applied has no effect",
		cause: "Stop sets a flag that outlives it; stop the Applies in progress instead",
	}
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := p.Stop(limited); err != nil {
		wrong.got = fmt.Sprintf("Stop fails while nothing is applied: %v", p.explain(err))
		return failed(wrong), nil
	}
	run := p.apply(ctx, f.applying(), 0, nil)
	if err := run.failure(); err != nil {
		wrong.got = fmt.Sprintf("after a Stop while nothing was applied, Apply fails: %v", err)
		return failed(wrong), nil
	}
	if run.finished.Stopped {
		wrong.got = "a Stop while nothing was applied stops the Apply that comes later"
		return failed(wrong), nil
	}
	return f.compare(want, "after a Stop while nothing was applied", wrong)
}

// stopOvertaking sends Stop between the headers and the request of an Apply, as a runtime does that stops just after it has begun.
func stopOvertaking(ctx context.Context, f *fixture, p *plugin, want reference) (result, error) {
	wrong := finding{
		clause: "P-28", expected: "an Apply that was sent before Stop is stopped, also when its request arrives after Stop",
		cause: "Apply is registered in its handler, which gRPC runs when the request has arrived; register it when its headers " +
			"arrive (in Go: pluginv1.OrderStops)",
	}
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	made := 0
	finished, err := p.ApplyLate(limited, f.applying(), 0, func() error { return p.Stop(limited) }, func(e pluginv1.Event) error {
		if _, is := e.(pluginv1.Started); is {
			made++
		}
		return nil
	})
	switch {
	case protocolBroken(err):
		return skipped("the events of Apply break the protocol, see %s", eventsName), nil
	case err != nil:
		wrong.got = fmt.Sprintf("an Apply that Stop overtakes fails: %v", p.explain(err))
	case finished.Error != nil:
		wrong.got = fmt.Sprintf("an Apply that Stop overtakes fails: %v", finished.Error)
	case !finished.Stopped || made > 0:
		wrong.got = fmt.Sprintf("an Apply that Stop overtakes starts %d changes and ends with stopped %v", made, finished.Stopped)
	default:
		return f.rerun(ctx, want, "after an Apply that Stop overtook")
	}
	return failed(wrong), nil
}

// stopAttempt is an Apply during which Stop was sent.
type stopAttempt struct {
	run    applied
	stop   error
	inHand bool // the first change was started and not done when the plugin was frozen
}

func (f *fixture) stopped(ctx context.Context, p *plugin) (stopAttempt, error) {
	var a stopAttempt
	var seen atomic.Int64
	var changed atomic.Bool
	first, done := make(chan struct{}), make(chan struct{})
	var frozen error
	go func() {
		defer close(done)
		a.run = p.apply(ctx, f.applying(), 0, func(_ int, e pluginv1.Event) {
			seen.Add(1)
			switch e.(type) {
			case pluginv1.Started:
				select {
				case <-first:
				default:
					frozen = freeze(p.PID())
					close(first)
				}
			case pluginv1.Changed:
				changed.Store(true)
			}
		})
	}()
	select {
	case <-first:
	case <-done:
		return a, nil
	}
	if frozen != nil {
		<-done
		return a, frozen
	}
	drain(&seen)
	a.inHand = !changed.Load()
	answered := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		answered <- p.Stop(ctx)
	}()
	// The call is in the socket when the plugin is thawed.
	wait := time.NewTimer(silence)
	<-wait.C
	if err := thaw(p.PID()); err != nil {
		return a, err
	}
	a.stop = p.explain(<-answered)
	<-done
	return a, nil
}

// drain waits until no more events arrive.
func drain(seen *atomic.Int64) {
	for before := int64(-1); before != seen.Load(); {
		before = seen.Load()
		wait := time.NewTimer(silence)
		<-wait.C
	}
}

func (f *fixture) checkStop(ctx context.Context, want reference, a stopAttempt, total int) (result, error) {
	made, started := len(a.run.changed()), len(a.run.started())
	wrong := finding{
		clause: "P-27", expected: "Stop is answered, Apply finishes the change in hand, starts no other one and ends with stopped",
		cause: "Stop cancels the change in hand, or ends Apply with an error instead of finished",
	}
	switch failure := a.run.failure(); {
	case a.stop != nil:
		wrong.got = fmt.Sprintf("Stop fails: %v", a.stop)
	case failure != nil:
		wrong.got = fmt.Sprintf("Apply fails after Stop: %v", failure)
	case made != started:
		wrong.got = fmt.Sprintf("after Stop, %d changes were started and %d finished: the change in hand was left", started, made)
	case a.run.finished.Stopped && made == total:
		return passed(), nil // Stop came with the last
	case !a.run.finished.Stopped && made < total:
		wrong.got = fmt.Sprintf("after Stop, %d of %d changes were made, and finished has no stopped", made, total)
	default:
		return f.rerun(ctx, want, "after Stop")
	}
	return failed(wrong), nil
}
