package proctree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Contain makes this process the child subreaper of its descendants, for the rest of its life, and starts the thread
// that starts programs. A program calls it once, before it starts others, and starts none by other means than Start until
// KillDescendants: their exit status would be collected here.
func Contain() (*Tree, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("proctree: become a subreaper: %w", err)
	}
	t := &Tree{pid: os.Getpid(), forks: make(chan func()), closed: make(chan struct{}), running: map[int]*Process{}}
	var err error
	if t.self, err = readStat(t.pid); err != nil {
		return nil, fmt.Errorf("proctree: %w", err)
	}
	go t.serve()
	go t.reap()
	return t, nil
}

// serve forks on one thread: PR_SET_PDEATHSIG fires when the thread ends that forked, not when its process does.
func (t *Tree) serve() {
	runtime.LockOSThread()
	for {
		select {
		case fork := <-t.forks:
			fork()
		case <-t.closed:
			return
		}
	}
}

// Start starts a program, which takes about a millisecond, unless ctx is over. The program leads a process group, and a
// session where this process has a controlling terminal, and dies with this process.
func (t *Tree) Start(ctx context.Context, c Command) (*Process, error) {
	if err := errors.Join(c.check(), ctx.Err()); err != nil {
		return nil, err
	}
	type result struct {
		p   *Process
		err error
	}
	done := make(chan result, 1)
	select {
	case t.forks <- func() { p, err := t.fork(c); done <- result{p, err} }:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-t.closed:
		return nil, errEnded
	}
	r := <-done
	if r.err != nil {
		return nil, r.err
	}
	go r.p.await()
	return r.p, nil
}

// KillDescendants kills every descendant and returns when none is left: the last step of a program on its way out,
// after which Start starts nothing. It collects the exit status of every child, so that an exec.Cmd.Wait that runs
// meanwhile may fail. When ctx ends first, the error names the processes that are left.
func (t *Tree) KillDescendants(ctx context.Context) error {
	var running []*Process
	t.mu.Lock()
	t.ended = true
	for _, p := range t.running {
		running = append(running, p)
	}
	t.mu.Unlock()
	for _, p := range running {
		if err := p.Kill(); err != nil {
			return err
		}
	}
	for _, p := range running {
		select {
		case <-p.ended:
		case <-ctx.Done():
		}
	}
	_, err := t.kill(ctx, true)
	if err == nil {
		t.over.Do(func() { close(t.closed) }) // nothing is left that would die with the thread
	}
	return err
}
