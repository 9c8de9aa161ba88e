package crash

import (
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/report"
)

// target is a machine or an image on which runs are made.
type target interface {
	// start starts a run with more arguments.
	start(t *testing.T, more ...string) *running
	// startTrapped starts a run whose calls a trap watches.
	startTrapped(t *testing.T, a aim) (*running, *trap)
	// await waits for the end of processes that a run named.
	await(t *testing.T, ids []string)
}

// maxTries bounds how often a round is repeated because its run ended before the moment of the attack. Such a run was
// undisturbed, so the next moment is computed from its duration.
const maxTries = 8

// round attacks runs until one is hit.
func round(t *testing.T, a attack, calm measure, crash func(attack, measure) (hit bool, lasted time.Duration)) {
	t.Helper()
	for try := range maxTries {
		t.Logf("-seed %d, try %d: %v of %v", *seed, try, a, calm)
		var hit bool
		if hit, calm.whole = crash(a, calm); hit {
			results.hit(a.victim)
			return
		}
		a = a.sooner()
	}
	t.Errorf("every one of %d runs ended before its moment", maxTries)
}

// disturb makes one run and attacks it.
func disturb(t *testing.T, on target, a attack, calm measure) (first *running, hit bool, lasted time.Duration) {
	t.Helper()
	if a.victim.trapped() {
		r, trap := on.startTrapped(t, a.aim(calm))
		trap.close(t)
		<-r.ended
		t.Logf("%d calls; hit %q; exit %d", trap.calls, trap.hit, r.code)
		return r, trap.hit != "", calm.whole
	}
	r := on.start(t)
	hits, lasted := strike(t, a, calm.of(a.victim), r.host, r.ended)
	<-r.ended
	return r, hits > 0, lasted
}

// apply applies once, and again as long as processes of a run that was killed hold the lock: it waits for their end.
func apply(t *testing.T, on target, more ...string) *running {
	t.Helper()
	for deadline := time.Now().Add(waitLimit); ; {
		r := on.start(t, more...)
		<-r.ended
		if r.code != report.ExitLocked || time.Now().After(deadline) {
			return r
		}
		results.lock()
		on.await(t, named(r.words))
	}
}
