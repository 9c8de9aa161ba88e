package proctree

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Tree is this process with all its descendants.
type Tree struct{}

// Contain makes this process the one to which its orphaned descendants come, for the rest of its life. A program that
// wraps commands calls it once, before the first.
func Contain() (*Tree, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("proctree: become a subreaper: %w", err)
	}
	return &Tree{}, nil
}

// KillDescendants kills every descendant, guarded or not, and returns when none is left: the last step of a program on
// its way out. It collects the exit status of every child, which alone proves that none is left; an exec.Cmd.Wait that
// runs meanwhile may fail for want of its own. When ctx ends first, the error names the processes that are left.
func (*Tree) KillDescendants(ctx context.Context) error {
	nobody := &waiter{}
	for wait := firstWait; nobody.reap(); wait = wait.next() {
		alive, err := killChildren()
		if ctx.Err() != nil {
			return errors.Join(fmt.Errorf("proctree: processes %d are still alive: %w", alive, ctx.Err()), err)
		}
		wait.sleep()
	}
	return nil
}
