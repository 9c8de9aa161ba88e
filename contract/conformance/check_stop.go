package conformance

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

const (
	stopAttempts = 15
	// conclusiveAttempts is how many times a plugin may make all changes although Stop came while the first was in
	// hand: it takes some time until a call arrives, and the changes of an image are quick.
	conclusiveAttempts = 8
	// silence is how long no event arrives until all that were sent have.
	silence = 30 * time.Millisecond
)

// stops sends Stop while the first change is in hand: the plugin is frozen (SIGSTOP) at the first started, Stop is
// sent, and the plugin goes on. A plugin that hears of Stop has it before it is done with the change, most times.
func stops(ctx context.Context, b *bench) (finding, error) {
	if !canFreeze {
		return skipped("processes cannot be frozen on this operating system"), nil
	}
	want, err := b.trial.settled(ctx)
	if err != nil {
		return finding{}, err
	}
	total := len(want.run.changed())
	if want.reason != "" || total < 2 {
		return notJudged(want, "fewer than two changes can be made in this image"), nil
	}
	f, err := b.trial.fresh(func(b *bench) (finding, error) { return b.stoppedBefore(ctx, want) })
	if f.verdict != Pass || err != nil {
		return f, err
	}
	deaf := 0
	for range stopAttempts {
		stopped := false
		f, err := b.trial.fresh(func(b *bench) (finding, error) {
			attempt, err := b.stopped(ctx)
			if err != nil {
				return finding{}, err
			}
			if attempt.inHand && !attempt.run.finished.Stopped {
				deaf++
			}
			stopped = attempt.run.finished.Stopped
			return b.judgeStop(ctx, want, attempt, total)
		})
		if stopped || f.verdict != Pass || err != nil {
			return f, err
		}
	}
	if deaf >= conclusiveAttempts {
		return failed("Stop was sent while the first of %d changes was in hand, %d times, and each time all were made", total, deaf).of("P-27"), nil
	}
	return skipped("the changes are made too quickly for a Stop between two of them"), nil
}

// stoppedBefore calls Stop while nothing is applied, which must not stop the Apply that comes later.
func (b *bench) stoppedBefore(ctx context.Context, want reference) (finding, error) {
	p, err := b.start(ctx)
	if err != nil {
		return finding{}, err
	}
	asked, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := p.Stop(asked); err != nil {
		return failed("Stop fails while nothing is applied: %v", p.explain(err)).of("P-28"), nil
	}
	run := p.apply(ctx, b.applying(), 0, nil)
	if err := run.failure(); err != nil {
		return failed("after a Stop while nothing was applied, Apply fails: %v", err).of("P-28"), nil
	}
	if run.finished.Stopped {
		return failed("a Stop while nothing was applied stops the Apply that comes later").of("P-28"), nil
	}
	f, err := b.compare(want, "after a Stop while nothing was applied")
	return f.of("P-28"), err
}

// stopAttempt is what happened.
type stopAttempt struct {
	run    applied
	stop   error
	inHand bool // the first change was started and not done when the plugin was frozen
}

func (b *bench) stopped(ctx context.Context) (stopAttempt, error) {
	p, err := b.start(ctx)
	if err != nil {
		return stopAttempt{}, err
	}
	var a stopAttempt
	var seen atomic.Int64
	var changed atomic.Bool
	first, done := make(chan struct{}), make(chan struct{})
	var frozen error
	go func() {
		defer close(done)
		a.run = p.apply(ctx, b.applying(), 0, func(_ int, e pluginv1.Event) {
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
	// The call is on its way: the plugin finds it when it goes on.
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

func (b *bench) judgeStop(ctx context.Context, want reference, a stopAttempt, total int) (finding, error) {
	made, started := len(a.run.changed()), len(a.run.started())
	stop, failure := trouble(a.stop), trouble(a.run.failure())
	switch {
	case stop != "":
		return failed("Stop fails: %s", stop).of("P-27"), nil
	case failure != "":
		return failed("Apply fails after Stop: %s", failure).of("P-27"), nil
	case made != started:
		return failed("after Stop, %d changes were started and %d finished: the change in hand was left", started, made).of("P-27"), nil
	case a.run.finished.Stopped && made == total:
		return passed(), nil // Stop came with the last
	case !a.run.finished.Stopped && made < total:
		return failed("after Stop, %d of %d changes were made, and finished does not say stopped", made, total).of("P-27"), nil
	}
	return b.again(ctx, want, "after Stop")
}
