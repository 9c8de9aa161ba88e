package run

import (
	"context"
	"time"
)

// waitLook is how often a run looks at what it waits for, and says it.
const waitLook = 10 * time.Second

// repeat calls say after a first pause and then after each waitLook, until the function that it returns is called, which waits for
// the end of a call.
func repeat(first time.Duration, say func()) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for pause := first; ; pause = waitLook {
			select {
			case <-time.After(pause):
				say()
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
