package proctree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"github.com/machineadm/machineadm/internal/proctree/guard"
)

// Process is a program that was started.
type Process struct {
	tree   *Tree
	id     int // the guard's
	path   string
	begun  chan struct{} // closed when it runs, or could not be started
	ended  chan struct{} // closed when it and all that it started are gone
	begin  sync.Once
	pid    int
	failed error // why it could not be started
	status int
	lost   error // why its status is not known
}

// Start starts a program, which takes milliseconds, and gives up when ctx ends. The program has a process group of its own in
// the guard's session, which has no terminal, every signal as it is by default, and dies with the guard.
func (t *Tree) Start(ctx context.Context, c Command) (_ *Process, err error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("proctree: %w", err)
	}
	defer func() { err = errors.Join(err, null.Close()) }()
	o, descriptors, err := c.order(null)
	if err != nil {
		return nil, err
	}
	p := &Process{tree: t, path: c.Path, begun: make(chan struct{}), ended: make(chan struct{})}
	t.mu.Lock()
	if t.gone {
		t.mu.Unlock()
		return nil, errGuardGone
	}
	t.last++
	p.id, o.ID = t.last, t.last
	t.processes[p.id] = p
	t.mu.Unlock()
	if err := t.send(o, descriptors); err != nil {
		t.mu.Lock()
		delete(t.processes, p.id)
		t.mu.Unlock()
		return nil, err
	}
	runtime.KeepAlive(c) // and so its files, until the kernel has its own references to them
	select {
	case <-p.begun:
	case <-ctx.Done(): // the guard is stopped, or the machine is overloaded
		return nil, errors.Join(ctx.Err(), p.Kill())
	}
	if p.failed != nil {
		return nil, p.failed
	}
	return p, nil
}

// order is what the guard is told, and the descriptors that go with it.
func (c Command) order(null *os.File) (o guard.Order, descriptors []int, err error) {
	o = guard.Order{Path: c.Path, Arguments: append([]string{c.Path}, c.Arguments...), Environment: c.Environment}
	if c.Dir != "" {
		if o.Dir, err = filepath.Abs(c.Dir); err != nil {
			return o, nil, fmt.Errorf("proctree: %w", err)
		}
	}
	files := []*os.File{null, null, null}
	for i, f := range []*os.File{c.Stdin, c.Stdout, c.Stderr} {
		if f != nil {
			files[i] = f
		}
	}
	for _, f := range append(files, c.Files...) {
		o.Files = append(o.Files, f != nil)
		if f != nil {
			descriptors = append(descriptors, int(f.Fd()))
		}
	}
	if c.Program != nil {
		o.Opened = true
		descriptors = append(descriptors, int(c.Program.Fd()))
	}
	if len(descriptors) > guard.MaxFiles {
		return o, nil, fmt.Errorf("proctree: %d files are more than the %d that can be handed on", len(descriptors), guard.MaxFiles)
	}
	return o, descriptors, nil
}

// take hears what the guard has to say of the process.
func (p *Process) take(a guard.Answer) {
	switch a.Event {
	case guard.Started:
		p.begin.Do(func() {
			p.pid = a.Value
			close(p.begun)
		})
	case guard.Failed:
		p.begin.Do(func() {
			p.failed = fmt.Errorf("start %s: %w", p.path, syscall.Errno(a.Value))
			close(p.begun)
			close(p.ended)
		})
	case guard.Ended:
		p.status = a.Value
		close(p.ended)
	}
}

// lose tells that the guard will say no more of the process.
func (p *Process) lose() {
	p.lost = errGuardGone
	p.begin.Do(func() {
		p.failed = errGuardGone
		close(p.begun)
	})
	close(p.ended)
}

// PID is the process ID of the program.
func (p *Process) PID() int { return p.pid }

// Wait returns when the program and all its descendants are gone. The status is the program's exit status, or 128 and
// the signal's number for a program that a signal ended. An error says that the guard was gone first: the program is
// dying with it, and KillDescendants ends what it had started. Wait may be called at any time and more than once.
func (p *Process) Wait() (status int, err error) {
	<-p.ended
	return p.status, p.lost
}

// Kill has the guard kill the program and all its descendants; Wait returns when they are gone. It may be called at any
// time and more than once. A guard that is gone has taken the program with it.
func (p *Process) Kill() error {
	select {
	case <-p.ended:
		return nil
	default:
	}
	if err := p.tree.send(guard.Order{ID: p.id}, nil); err != nil && !errors.Is(err, errGuardGone) {
		return err
	}
	return nil
}
