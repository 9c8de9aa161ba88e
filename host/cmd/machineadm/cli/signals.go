package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// interrupts closes the channel at the first signal to stop, and cancels the context at the second.
func interrupts(ctx context.Context) (context.Context, <-chan struct{}, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	first := make(chan struct{})
	go func() {
		for n := range 2 {
			select {
			case <-signals:
			case <-ctx.Done():
				return
			}
			if n == 0 {
				close(first)
			} else {
				cancel()
			}
		}
	}()
	return ctx, first, func() { signal.Stop(signals); cancel() }
}
