package atomicfile

import "time"

// ownerWait bounds how long a write waits for another live writer of the same file.
const ownerWait = 10 * time.Second

// backoff provides growing pauses until a deadline.
type backoff struct {
	deadline time.Time
	pause    time.Duration
}

func newBackoff(limit time.Duration) *backoff {
	return &backoff{deadline: time.Now().Add(limit), pause: time.Millisecond}
}

// wait pauses, or reports that the deadline has passed.
func (p *backoff) wait() bool {
	if time.Now().After(p.deadline) {
		return false
	}
	time.Sleep(p.pause)
	p.pause = min(p.pause*2, 50*time.Millisecond)
	return true
}
