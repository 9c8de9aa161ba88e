//go:build !linux && !windows

package proctree

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

func unsupported() error {
	return fmt.Errorf("proctree on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Tree is this process with all its descendants.
type Tree struct{}

// Contain is not supported on this operating system.
func Contain() (*Tree, error) { return nil, unsupported() }

// KillDescendants is not supported on this operating system.
func (*Tree) KillDescendants(context.Context) error { return unsupported() }

// Process is a program that was started.
type Process struct{}

// KillOrphans is not supported on this operating system.
func (*Tree) KillOrphans(context.Context) ([]Killed, error) { return nil, unsupported() }

// Start is not supported on this operating system.
func (*Tree) Start(context.Context, Command) (*Process, error) { return nil, unsupported() }

// PID is not supported on this operating system.
func (*Process) PID() int { return 0 }

// Wait is not supported on this operating system.
func (*Process) Wait() (int, error) { return 0, unsupported() }

// Kill is not supported on this operating system.
func (*Process) Kill() error { return unsupported() }

// NoCoreDumps is not supported on this operating system.
func NoCoreDumps() error { return unsupported() }

// DieWithParent is not supported on this operating system.
func DieWithParent() error { return unsupported() }
