package changes

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
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

// Stops sends Stop at three moments: before an Apply, during its first change, and between its headers and its request.
func Stops(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	want, err := f.Runner.Settled(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	total := len(want.Run.Changed())
	if want.Reason != "" || total == 0 {
		return rig.NotComparable(want, "no change can be made in this image"), nil
	}
	p, err := f.StartNew(ctx, process.UsualUmask)
	if err != nil {
		return rig.Result{}, err
	}
	for _, moment := range []func(context.Context, *rig.Fixture, *process.Plugin, rig.Reference) (rig.Result, error){
		stopBefore, stopDuring, stopOvertaking,
	} {
		got, err := f.Runner.Another(func(f *rig.Fixture) (rig.Result, error) { return moment(ctx, f, p, want) })
		if got.Status == rig.Fail || err != nil {
			return got, err
		}
	}
	return rig.Passed(), nil
}

// stopDuring sends Stop while the first change is in hand: the plugin is frozen (SIGSTOP) at the first started, Stop is sent,
// and the plugin is thawed (SIGCONT). Most times, Stop then arrives before the plugin is done with the change.
func stopDuring(ctx context.Context, f *rig.Fixture, p *process.Plugin, want rig.Reference) (rig.Result, error) {
	total := len(want.Run.Changed())
	if !process.CanFreeze || total < 2 {
		return rig.Skipped("processes cannot be frozen on this operating system, or fewer than two changes can be made in this image"), nil
	}
	ignored := 0
	for range stopAttempts {
		stopped := false
		got, err := f.Runner.Another(func(f *rig.Fixture) (rig.Result, error) {
			attempt, err := stopOnce(ctx, f, p)
			if err != nil {
				return rig.Result{}, err
			}
			if attempt.inHand && !attempt.run.Finished.Stopped {
				ignored++
			}
			stopped = attempt.run.Finished.Stopped
			return checkStop(ctx, f, want, attempt, total)
		})
		if stopped || got.Status != rig.Pass || err != nil {
			return got, err
		}
	}
	if ignored >= conclusiveAttempts {
		return rig.Failed(rig.Finding{
			Clause: "P-27", Expected: "after Stop, Apply finishes the change in hand and starts no other one",
			Got:   fmt.Sprintf("Stop was sent while the first of %d changes was in hand, %d times, and each time all were made", total, ignored),
			Cause: "Stop has no effect on Apply, or is served only after Apply: one thread, or an event loop that Apply blocks",
		}), nil
	}
	return rig.Skipped("the changes are made too quickly for a Stop between two of them"), nil
}

// stopBefore calls Stop while nothing is applied, which must not stop the Apply that follows.
func stopBefore(ctx context.Context, f *rig.Fixture, p *process.Plugin, want rig.Reference) (rig.Result, error) {
	wrong := rig.Finding{
		Clause: "P-28", Expected: "a Stop while nothing is applied has no effect",
		Cause: "Stop sets a flag that outlives it; stop the Applies in progress instead",
	}
	limited, cancel := context.WithTimeout(ctx, process.CallTimeout)
	defer cancel()
	if err := p.Stop(limited); err != nil {
		wrong.Got = fmt.Sprintf("Stop fails while nothing is applied: %v", p.Explain(err))
		return rig.Failed(wrong), nil
	}
	run := p.CallApply(ctx, f.Applying(), 0, nil)
	if err := run.Failure(); err != nil {
		wrong.Got = fmt.Sprintf("after a Stop while nothing was applied, Apply fails: %v", err)
		return rig.Failed(wrong), nil
	}
	if run.Finished.Stopped {
		wrong.Got = "a Stop while nothing was applied stops the Apply that comes later"
		return rig.Failed(wrong), nil
	}
	return f.Compare(want, "after a Stop while nothing was applied", wrong)
}

// stopOvertaking sends Stop between the headers and the request of an Apply, as a runtime does that stops just after it has begun.
func stopOvertaking(ctx context.Context, f *rig.Fixture, p *process.Plugin, want rig.Reference) (rig.Result, error) {
	wrong := rig.Finding{
		Clause: "P-28", Expected: "an Apply that was sent before Stop is stopped, also when its request arrives after Stop",
		Cause: "Apply is registered in its handler, which gRPC runs when the request has arrived; register it when its headers " +
			"arrive (in Go: pluginv1.OrderStops)",
	}
	limited, cancel := context.WithTimeout(ctx, process.CallTimeout)
	defer cancel()
	made := 0
	finished, err := p.ApplyLate(limited, f.Applying(), 0, func() error { return p.Stop(limited) }, func(e pluginv1.Event) error {
		if _, is := e.(pluginv1.Started); is {
			made++
		}
		return nil
	})
	switch {
	case process.ProtocolBroken(err):
		return rig.Skipped("the events of Apply break the protocol, see %s", rig.EventsName), nil
	case err != nil:
		wrong.Got = fmt.Sprintf("an Apply that Stop overtakes fails: %v", p.Explain(err))
	case finished.Error != nil:
		wrong.Got = fmt.Sprintf("an Apply that Stop overtakes fails: %v", finished.Error)
	case !finished.Stopped || made > 0:
		wrong.Got = fmt.Sprintf("an Apply that Stop overtakes starts %d changes and ends with stopped %v", made, finished.Stopped)
	default:
		return f.Rerun(ctx, want, "after an Apply that Stop overtook")
	}
	return rig.Failed(wrong), nil
}

// stopAttempt is an Apply during which Stop was sent.
type stopAttempt struct {
	run    process.Applied
	stop   error
	inHand bool // the first change was started and not done when the plugin was frozen
}

func stopOnce(ctx context.Context, f *rig.Fixture, p *process.Plugin) (stopAttempt, error) {
	var a stopAttempt
	var seen atomic.Int64
	var changed atomic.Bool
	first, done := make(chan struct{}), make(chan struct{})
	var frozen error
	go func() {
		defer close(done)
		a.run = p.CallApply(ctx, f.Applying(), 0, func(_ int, e pluginv1.Event) {
			seen.Add(1)
			switch e.(type) {
			case pluginv1.Started:
				select {
				case <-first:
				default:
					frozen = process.Freeze(p.PID())
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
		ctx, cancel := context.WithTimeout(ctx, process.CallTimeout)
		defer cancel()
		answered <- p.Stop(ctx)
	}()
	// The call is in the socket when the plugin is thawed.
	wait := time.NewTimer(silence)
	<-wait.C
	if err := process.Thaw(p.PID()); err != nil {
		return a, err
	}
	a.stop = p.Explain(<-answered)
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

func checkStop(ctx context.Context, f *rig.Fixture, want rig.Reference, a stopAttempt, total int) (rig.Result, error) {
	made, started := len(a.run.Changed()), len(a.run.Started())
	wrong := rig.Finding{
		Clause: "P-27", Expected: "Stop is answered, Apply finishes the change in hand, starts no other one and ends with stopped",
		Cause: "Stop cancels the change in hand, or ends Apply with an error instead of finished",
	}
	switch failure := a.run.Failure(); {
	case a.stop != nil:
		wrong.Got = fmt.Sprintf("Stop fails: %v", a.stop)
	case failure != nil:
		wrong.Got = fmt.Sprintf("Apply fails after Stop: %v", failure)
	case made != started:
		wrong.Got = fmt.Sprintf("after Stop, %d changes were started and %d finished: the change in hand was left", started, made)
	case a.run.Finished.Stopped && made == total:
		return rig.Passed(), nil // Stop came with the last
	case !a.run.Finished.Stopped && made < total:
		wrong.Got = fmt.Sprintf("after Stop, %d of %d changes were made, and finished has no stopped", made, total)
	default:
		return f.Rerun(ctx, want, "after Stop")
	}
	return rig.Failed(wrong), nil
}
