package outbox

import (
	"time"

	"github.com/machineadm/machineadm/host/state"
)

// The tries to deliver a report. The time off between two boots does not count: no clock that can be trusted measures it.
const (
	firstPause = 30 * time.Second
	maxPause   = 10 * time.Minute
	jitter     = 0.2
	// GiveUp is the time from the first try after which a report is dropped.
	GiveUp = 24 * time.Hour
)

// Age returns how long a report has been waiting, in time that the machine was running.
func Age(o state.Outgoing, now state.Clock) time.Duration { return o.Age + since(o.LastTry, now) }

// Expired reports whether a report has been waiting for too long.
func Expired(o state.Outgoing, now state.Clock) bool { return Age(o, now) >= GiveUp }

// Wait returns the time until the next try, 0 if it is due. A boot makes it due: then its cause may be gone.
func Wait(o state.Outgoing, now state.Clock) time.Duration {
	if !sameBoot(o.LastTry, now) {
		return 0
	}
	return max(0, o.Pause-since(o.LastTry, now))
}

// Failed returns the record after a failed try at this time: the pause doubles from 30 s to 10 min. random is in [0,1) and moves
// it by 20 % at most; after is the least pause that the destination asked for.
func Failed(o state.Outgoing, now state.Clock, wall time.Time, after time.Duration, random float64) state.Outgoing {
	o.Age, o.LastTry = Age(o, now), now
	o.Pause = maxPause
	if o.Tries < 5 { // 30 s times 2 to the 5th is more than 10 min
		o.Pause = min(maxPause, firstPause<<o.Tries)
	}
	o.Pause = time.Duration(float64(o.Pause) * (1 + jitter*(2*random-1)))
	o.Pause = max(o.Pause, min(after, maxPause))
	o.Tries++
	o.NextTry = wall.Add(o.Pause)
	return o
}

// sameBoot reports whether two readings are of one boot. Without boot IDs, a clock that went back shows another boot.
func sameBoot(before, now state.Clock) bool {
	return before.BootID == now.BootID && now.Uptime >= before.Uptime
}

// since returns the time between two readings; of another boot, that since the boot.
func since(before, now state.Clock) time.Duration {
	if sameBoot(before, now) {
		return now.Uptime - before.Uptime
	}
	return now.Uptime
}
