//go:build linux

package main

import (
	"testing"

	"github.com/machineadm/machineadm/plugins/timesync/internal/kit"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	kit.Run(t, "ntpd")
}
