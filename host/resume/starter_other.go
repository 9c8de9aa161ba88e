//go:build !linux && !windows

package resume

import (
	"context"
	"errors"
)

// none is the Starter of a system that nothing is known of.
type none struct{}

// NewStarter has nothing to start with here.
func NewStarter([]string, string, bool) Starter { return none{} }

// Install implements Starter.
func (none) Install(context.Context) error {
	return errors.New("nothing is known of how this system starts a command at boot")
}

// Remove implements Starter.
func (none) Remove(context.Context) error { return nil }

// Files are what a Starter writes outside of the state directory.
func Files() []string { return nil }
