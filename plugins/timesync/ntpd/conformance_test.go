//go:build linux

package main

//machineadm:first

import (
	"path/filepath"
	"testing"

	"github.com/machineadm/machineadm/contract/conformance"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/require"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	require.Root(t) // some cases set the owners of files
	binary := filepath.Join(t.TempDir(), naming.Binary(v1alpha1.KindTimesync, "ntpd"))
	if err := require.Build(t.Context(), ".", binary); err != nil {
		t.Fatal(err)
	}
	conformance.Run(t, binary, "testdata/conformance")
}
