package sdk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk/internal/fault"
)

// WaitSpec is a condition of the machine, and how long a change waits for it.
type WaitSpec struct {
	// What names the condition in the error, such as "clock synchronization".
	What string
	// Every is the pause between two calls of Probe; 0 means a second.
	Every time.Duration
	// Timeout bounds the wait; 0 means a minute.
	Timeout time.Duration
	// Probe returns nil once the condition is met. Status is one line for the operator, or empty. Its errors quote no values
	// of the document; Final marks one that waiting does not fix. It has to respect its context.
	Probe func(ctx context.Context) (status string, err error)
}

// Wait calls Probe until it returns nil, and reports its status when that changes. When the time is used up, the error is a
// Precondition with the last error and status, and with the hint of that error, if it has one. Wait never returns a Retry:
// another try of the host would begin the same wait again.
//
// When ctx ends, Wait returns its cause, such as ErrStopped in an interruptible change.
func Wait(ctx context.Context, p Progress, w WaitSpec) error {
	timeout := cmp.Or(max(w.Timeout, 0), time.Minute)
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	shown, last := "", errors.New("the first check did not end")
	for {
		status, err := w.Probe(limited)
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if status != "" && status != shown {
			p.Report(status)
			shown = status
		}
		switch {
		case err == nil:
			return nil
		case fault.IsFinal(err):
			if known, ok := fault.Known(err); ok && known.Code != pluginv1.CodeRetry {
				return err
			}
			return Final(fault.Caused(w.What+": "+fault.Message(err), "correct that, then run again", err))
		case limited.Err() == nil: // otherwise err only reports the timeout
			last = err
		}
		if !wait(limited, cmp.Or(max(w.Every, 0), time.Second)) {
			break
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	message := fmt.Sprintf("%s: not within %v: %s", w.What, timeout, fault.Message(last))
	if shown != "" && shown != fault.Message(last) {
		message += " (" + shown + ")"
	}
	return fault.Caused(message, "correct what the message says, or allow more time, then run again", last)
}

// wait pauses, and returns false when ctx ends first.
func wait(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}
