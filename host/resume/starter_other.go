//go:build !linux && !windows

package resume

import (
	"context"
	"errors"
)

// none is the Starter of an unsupported system.
type none struct{}

// NewStarter returns a Starter that cannot install.
func NewStarter([]string, string, bool) Starter { return none{} }

// NewReportStarter returns a Starter that cannot install.
func NewReportStarter([]string, string) Starter { return none{} }

// Install implements Starter.
func (none) Install(context.Context) error {
	return errors.New("machineadm starts no command by itself on this system")
}

// Remove implements Starter.
func (none) Remove(context.Context) error { return nil }

// Files returns the paths that a Starter writes outside of the state directory.
func Files() []string { return nil }
