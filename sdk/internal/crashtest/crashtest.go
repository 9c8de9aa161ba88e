// Package crashtest ends the runs of a test before each of their effects in turn, as a crash would.
package crashtest

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/aymanbagabas/go-udiff"
)

// Point is the effect before which a run ends.
type Point struct {
	mutex sync.Mutex
	left  int // effects until the end; below 0 the run does not end
	ended bool
}

// At returns the point before the effect with this number, counted from 0.
func At(n int) *Point { return &Point{left: n} }

// Never returns a point that no run reaches.
func Never() *Point { return &Point{left: -1} }

// Effect precedes each effect of a run. At the point it ends its goroutine, as every later call does, also in deferred
// functions and in other goroutines: the machine stays as it is.
func (p *Point) Effect() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.ended = p.ended || p.left == 0
	p.left--
	if p.ended {
		runtime.Goexit()
	}
}

// Run calls a function in a goroutine of its own, and reports whether the point ended it.
func (p *Point) Run(run func()) (ended bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		run()
	}()
	<-done
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.ended
}

// Subject is a machine, and the run that changes it.
type Subject struct {
	// Run plans and makes the changes. It calls Effect before each effect, and returns the number of planned changes.
	Run func(p *Point) (planned int, err error)
	// First is the first run that is ended, where it differs from Run.
	First func(p *Point) (planned int, err error)
	// State describes the machine.
	State func() string
}

// Everywhere ends a run before each of its effects, the next one before each of its own, and so on for as many runs in a row
// as depth. The run after them must have the outcome of one that was never ended, and leave nothing to do. build returns the
// same machine each time.
func Everywhere(t testing.TB, depth int, build func() Subject) {
	t.Helper()
	uninterrupted := build()
	_, err := uninterrupted.Run(Never())
	want := uninterrupted.outcome(t, err, "without a crash")
	for at := make([]int, depth); ; {
		s, runs := build(), 0
		for runs < depth && s.ends(runs, At(at[runs]), &err) {
			runs++
		}
		where := fmt.Sprint("ended before the effects ", at[:runs])
		switch {
		case runs == 0 && at[0] == 0 && !t.Failed():
			t.Errorf("the run has no effects")
			return
		case runs == 0:
			return
		case runs == depth:
			_, err = s.Run(Never())
			at[depth-1]++
		default: // run number runs was not ended
			at[runs] = 0
			at[runs-1]++
		}
		if got := s.outcome(t, err, where); got != want {
			t.Errorf("%s: the outcome is another one (%v)\n%s", where, err, udiff.Unified("without a crash", where, want, got))
		}
		if t.Failed() {
			return
		}
	}
}

// ends makes a run, and reports whether it was ended.
func (s Subject) ends(runs int, p *Point, err *error) bool {
	run := s.Run
	if runs == 0 && s.First != nil {
		run = s.First
	}
	return p.Run(func() { _, *err = run(p) })
}

// outcome describes the machine after a run that was not ended. After success nothing may be planned.
func (s Subject) outcome(t testing.TB, err error, where string) string {
	t.Helper()
	text := fmt.Sprintf("failed: %v\n%s", err != nil, s.State())
	if err != nil {
		return text
	}
	if planned, err := s.Run(Never()); planned != 0 || err != nil {
		t.Errorf("%s: afterwards %d changes are planned (%v)", where, planned, err)
	}
	return text
}
