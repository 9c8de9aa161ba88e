package values

import (
	"context"
	"time"
)

// WaitLook is how often a run looks at what it waits for, and says it.
const WaitLook = 10 * time.Second

// Repeat calls say after a first pause and then after each WaitLook, until the function that it returns is called, which waits for
// the end of a call.
func Repeat(first time.Duration, say func()) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for pause := first; ; pause = WaitLook {
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
