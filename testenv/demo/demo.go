// Package demo is what a newcomer is shown: make demo on a scratch root, make demo-node on a booted machine, make demo-nodes on two.
// make demo-cluster, with Cluster API, is in testenv/infrastructure. All are tests too: a demo that does not work is worse than none.
package demo

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// Interruptible is a test that Ctrl-C ends like a failure, so that it removes what it has made.
type Interruptible struct {
	testing.TB
	ctx context.Context //nolint:containedctx // what Context returns
}

// OnSignal catches the signal until the test and its cleanup have ended.
func OnSignal(t testing.TB) Interruptible {
	t.Helper()
	// Not before the cleanup, which the end of the test's own context precedes.
	ctx, stop := signal.NotifyContext(context.WithoutCancel(t.Context()), os.Interrupt, syscall.SIGTERM)
	silent := context.AfterFunc(ctx, func() {
		fmt.Println("\ninterrupted: removing the machines")
		stop() // the next signal ends the process
	})
	t.Cleanup(func() {
		silent()
		stop()
	})
	return Interruptible{t, ctx}
}

// Context ends with the signal.
func (t Interruptible) Context() context.Context { return t.ctx }

// Failed is false after Ctrl-C, so that no node shows its log.
func (t Interruptible) Failed() bool { return t.ctx.Err() == nil && t.TB.Failed() }

// Say prints what comes next.
func Say(text string) { fmt.Println("\n== " + text) }
