package plugins

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	contractlaunch "github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/host/launch"
)

// The bounds of calls. The calls of one namespace leave room for others, also while a store does not answer.
const (
	callsOfNamespace = 4
	callsOfProvider  = 16
	defaultLimit     = 15 * time.Second
	// RetryFor is how long a plugin may try again by itself.
	RetryFor = 3 * time.Second
	// Busy is how long a call waits for room, and then its pause.
	Busy = time.Second
)

// plugin is a plugin that is started when it is needed.
type plugin struct {
	binary string
	// lock is held during a start and an end, and guards what follows.
	lock    chan struct{}
	process *launch.Plugin
	began   time.Time
	pause   time.Duration
	next    time.Time // of a start
	failed  error     // of the last start

	mu    sync.Mutex
	calls map[string]int // in work, by namespace
	total int
	left  chan struct{} // closed when the next call ends
}

// enter waits a moment for room: a call that comes again has rendered its documents again.
func (o *plugin) enter(ctx context.Context, namespace string) bool {
	ctx, cancel := context.WithTimeout(ctx, Busy)
	defer cancel()
	for {
		o.mu.Lock()
		if o.total < callsOfProvider && o.calls[namespace] < callsOfNamespace {
			o.total++
			o.calls[namespace]++
			o.mu.Unlock()
			return true
		}
		left := o.left
		o.mu.Unlock()
		select {
		case <-left:
		case <-ctx.Done():
			return false
		}
	}
}

func (o *plugin) leave(namespace string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.total--
	if o.calls[namespace]--; o.calls[namespace] == 0 {
		delete(o.calls, namespace)
	}
	close(o.left)
	o.left = make(chan struct{})
}

// pausing is an error of a start that is not repeated yet.
type pausing struct {
	error
	left time.Duration
}

func (e *pausing) Unwrap() error { return e.error }

// running returns the process, and whether this call has started it.
func (o *plugin) running(ctx context.Context, start func(context.Context, string) (*launch.Plugin, error)) (p *launch.Plugin, fresh bool, err error) {
	select {
	case o.lock <- struct{}{}:
		defer func() { <-o.lock }()
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	if o.process != nil {
		return o.process, false, nil
	}
	if left := time.Until(o.next); left > 0 {
		return nil, false, &pausing{o.failed, left}
	}
	o.began = time.Now()
	if o.process, o.failed = start(ctx, o.binary); o.failed != nil {
		o.process = nil
		o.delay()
		return nil, false, o.failed
	}
	return o.process, true, nil
}

var (
	errAgain = errors.New("the plugin has ended, and is started again after a pause")
	errEnded = errors.New("the manager ends")
)

// end ends a process that is of no use any more, unless another call has done so.
func (o *plugin) end(p *launch.Plugin) {
	o.lock <- struct{}{}
	defer func() { <-o.lock }()
	if o.process != p {
		return
	}
	p.Kill()
	o.process, o.failed = nil, errAgain
	o.delay()
}

// The pauses between two starts of a plugin that does not live long.
const (
	firstPause = time.Second
	mostPause  = time.Minute
)

// delay sets the time of the next start. One that follows a long life is not delayed.
func (o *plugin) delay() {
	if time.Since(o.began) >= mostPause {
		o.pause, o.next = 0, time.Time{}
		return
	}
	o.pause = min(max(2*o.pause, firstPause), mostPause)
	o.next = time.Now().Add(o.pause)
}

// environment is what a plugin gets: the path, and the proxies of the manager without their users.
func environment() []string { return contractlaunch.Environment("linux", os.LookupEnv) }
