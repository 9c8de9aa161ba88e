package sdk

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// The pauses between two tries: they double from the first to the longest, each with a random part of a fifth, so that many
// machines do not come back at once.
const (
	firstTryPause   = 100 * time.Millisecond
	longestTryPause = 5 * time.Second
	jitter          = 0.2
)

// retrying repeats try as long as it answers Retry, for at most this time. The answer is the last error.
func retrying(ctx context.Context, most time.Duration, try func() error) error {
	end := time.Now().Add(most)
	for pause := firstTryPause; ; pause = min(2*pause, longestTryPause) {
		err := try()
		known, ok := asContract(err)
		if !ok || known.Code != pluginv1.CodeRetry {
			return err
		}
		wait := max(known.RetryAfter, jittered(pause, rand.Float64()))
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

// jittered changes a pause by up to a fifth in both directions. at is from 0 to 1.
func jittered(pause time.Duration, at float64) time.Duration {
	return time.Duration(float64(pause) * (1 - jitter + 2*jitter*at))
}
