package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// backend is one machine with a disk of its own. Its methods are called by one Node; exec and state may be called
// at any time and from several goroutines.
type backend interface {
	// start powers the machine on and returns when PID 1 runs. Everything volatile (network, sysctls) is new;
	// the disk is as it was left. Console output is appended to the file.
	start(ctx context.Context, console string) error
	// state never blocks.
	state() power
	// exec runs a command in the machine and returns its exit status; 128+n after signal n.
	// The error is errOff, the context's, or the reason why the command could not be run.
	exec(ctx context.Context, c command) (exit int, err error)
	// cut cuts the power and returns when no process of the machine is left. The disk stays.
	cut(ctx context.Context) error
	// release cuts the power and frees all resources of the machine on the host. It can be repeated.
	release(ctx context.Context) error
}

type command struct {
	argv   []string
	stdin  io.Reader // nil: empty
	stdout io.Writer
	stderr io.Writer
}

type power int

const (
	poweredOff power = iota // never started, shut down, or cut
	booting                 // PID 1 runs, or is about to
	booted                  // every unit was started or failed
	rebooting               // off, to be started again
)

func (p power) on() bool { return p == booting || p == booted }

var errOff = errors.New("the node is off")

// pollInterval is short against everything that is waited for (a boot takes hundreds of milliseconds)
// and long against the cost of one check.
const pollInterval = 10 * time.Millisecond

// poll checks until the condition holds, fails, or ctx ends.
func poll(ctx context.Context, every time.Duration, what string, holds func() (bool, error)) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		ok, err := holds()
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-ticker.C:
		}
	}
}
