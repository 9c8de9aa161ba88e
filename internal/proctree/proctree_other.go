//go:build !linux && !windows

package proctree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

func unsupported() error {
	return fmt.Errorf("proctree on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// MainIfGuard does nothing: there are no guards on this operating system.
func MainIfGuard() {}

// Tree is this process with all its descendants.
type Tree struct{}

// Contain is not supported on this operating system.
func Contain() (*Tree, error) { return nil, unsupported() }

// KillDescendants is not supported on this operating system.
func (*Tree) KillDescendants(context.Context) error { return unsupported() }

// Guarded is a command that cannot outlive this process.
type Guarded struct{}

// Wrap is not supported on this operating system.
func Wrap(*exec.Cmd, *os.File) (*Guarded, error) { return nil, unsupported() }

// Kill is not supported on this operating system.
func (*Guarded) Kill() error { return unsupported() }

// NoCoreDumps is not supported on this operating system.
func NoCoreDumps() error { return unsupported() }
