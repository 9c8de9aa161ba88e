//go:build linux

package main

import (
	"testing"

	"github.com/machineadm/machineadm/plugins/timesync/internal/kit"
)

// TestConformance has one case: the kit works on image roots, which Windows does not have, and elsewhere every document is
// Unsupported because of the platform.
func TestConformance(t *testing.T) {
	t.Parallel()
	kit.Run(t, "w32time")
}
