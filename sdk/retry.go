package sdk

import (
	"context"
	"math/rand/v2"
	"net"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// The pauses between two tries: they double from the first to the longest, each longer or shorter by up to a fifth at random.
// The first of the longest is any part of it: otherwise machines that begin at once, such as a whole rack after a power cut,
// would come back almost at once.
const (
	firstTryPause   = 100 * time.Millisecond
	longestTryPause = 5 * time.Second
	jitter          = 0.2
)

// retrying repeats try as long as it answers Retry, for at most this time. The answer is the last error.
func retrying(ctx context.Context, most time.Duration, try func() error) error {
	end := time.Now().Add(most)
	for pause, apart := firstTryPause, false; ; pause = min(2*pause, longestTryPause) {
		err := try()
		known, ok := asContract(err)
		if !ok || known.Code != pluginv1.CodeRetry {
			return err
		}
		wait := min(jittered(pause, rand.Float64()), longestTryPause)
		if pause == longestTryPause && !apart {
			wait, apart = rand.N(pause), true
		}
		if after := known.RetryAfter; after > 0 { // all machines may have the same one
			wait = max(wait, after+time.Duration(jitter*rand.Float64()*float64(after)))
		}
		if time.Now().Add(wait).After(end) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// unreachable classifies an error on the way to a source. A name that is not resolved can pass: it may not be published yet,
// or the machine, which boots, has no name servers yet.
func unreachable(ctx context.Context, err error) error {
	if _, known := asContract(err); !known && is[*net.DNSError](err) {
		return Retry(0, err.Error())
	}
	return classify(ctx, err)
}

// jittered changes a pause by up to a fifth in both directions. at is from 0 to 1.
func jittered(pause time.Duration, at float64) time.Duration {
	return time.Duration(float64(pause) * (1 - jitter + 2*jitter*at))
}
