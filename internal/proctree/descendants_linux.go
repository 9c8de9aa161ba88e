package proctree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/machineadm/machineadm/internal/proctree/proc"
)

// pause is the time between two rounds of killing: short, since most processes die at once, and then longer, for one
// that hangs in the kernel.
type pause time.Duration

const (
	firstWait = pause(500 * time.Microsecond)
	lastWait  = pause(50 * time.Millisecond)
)

func (p pause) next() pause { return min(2*p, lastWait) }
func (p pause) sleep()      { time.Sleep(time.Duration(p)) }

// killDescendants kills until no child is left: each one whose parent dies becomes a child of this subreaper.
func killDescendants(ctx context.Context) error {
	for wait := firstWait; collect(); wait = wait.next() {
		alive, err := killChildren()
		if ctx.Err() != nil {
			return errors.Join(fmt.Errorf("proctree: processes %d are still alive: %w", alive, ctx.Err()), err)
		}
		wait.sleep()
	}
	return nil
}

// collect waits for every dead child. It returns false when there is no child left, dead or alive.
func collect() bool {
	for {
		pid, _, some := proc.Collect()
		if pid == 0 {
			return some
		}
	}
}

// killChildren sends SIGKILL to every living child of this process and to the process groups of those that have a
// session of their own, each as soon as it is seen, so that a child that keeps replacing itself is caught. Whoever made
// such a session is a descendant, and so are all members of its groups.
// It returns the children that were alive. Children whose parents die by it show up in the next round.
func killChildren() (alive []int, err error) {
	self := os.Getpid()
	own, err := proc.Read(self)
	if err != nil {
		return nil, err
	}
	err = proc.Each(func(pid int) error {
		p, err := proc.Read(pid)
		if err != nil || p.Parent != self || p.Dead() {
			return err
		}
		alive = append(alive, pid)
		if p.Session != own.Session && p.Group > 1 {
			// ESRCH if the child just died or moved to another group: the next line or round is for that.
			_ = syscall.Kill(-p.Group, syscall.SIGKILL)
		}
		return killChild(self, pid)
	})
	return alive, err
}

// killChild makes sure that pid is still the child: it may have been waited for, and its number given away, meanwhile.
func killChild(self, pid int) error {
	handle, err := os.FindProcess(pid) // a pidfd where the kernel has them, which cannot change its process
	if err != nil {
		return err
	}
	p, err := proc.Read(pid)
	if err == nil && p.Parent == self {
		if err = handle.Kill(); errors.Is(err, os.ErrProcessDone) {
			err = nil
		}
	}
	return errors.Join(err, handle.Release())
}
