package sdk

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/netfault"
	"github.com/machineadm/machineadm/sdk/internal/fault"
)

// The pauses between two tries: they double from the first to the longest, each shorter by up to a tenth at random. None is longer
// than the time since the first try, so that a source is found within as long again as it was away. The first of the longest is any
// part of it: otherwise machines that begin at once, such as a whole rack after a power cut, would come back almost at once.
const (
	firstTryPause   = 100 * time.Millisecond
	longestTryPause = 5 * time.Second
	jitter          = 0.1
)

// retrying repeats try as long as it answers Retry, for at most this time. The answer is the last error.
func retrying(ctx context.Context, most time.Duration, try func() error) error {
	began := time.Now()
	end := began.Add(most)
	for pause, apart := firstTryPause, false; ; pause = min(2*pause, longestTryPause) {
		err := try()
		known, ok := fault.Known(err)
		if !ok || known.Code != pluginv1.CodeRetry {
			return err
		}
		longest := min(pause, max(time.Since(began), firstTryPause))
		wait := longest - time.Duration(jitter*rand.Float64()*float64(longest))
		if longest == longestTryPause && !apart {
			wait, apart = rand.N(longest), true
		}
		if after := known.RetryAfter; after > 0 { // all machines may have the same one
			wait = max(wait, after+time.Duration(2*jitter*rand.Float64()*float64(after)))
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
	if _, known := fault.Known(err); !known && netfault.Is(err, netfault.Name) {
		return Retry(0, err.Error())
	}
	return fault.Classify(ctx, err)
}
