package main

//machineadm:first

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/conformance"
	tiers "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/foreign"
	"github.com/machineadm/machineadm/testenv/tools"
)

const binary = "machineadm-timesync-plugin-openntpd"

func TestConformance(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, tools.Products(t.Context(), dir, map[string]string{binary: "testenv/foreign/openntpd"}))
	conformance.Run(t, filepath.Join(dir, binary), "testdata/conformance")
}

func TestOpenRC(t *testing.T) {
	t.Parallel()
	tiers.Root(t)
	dir := t.TempDir()
	require.NoError(t, tools.Products(t.Context(), dir, map[string]string{
		binary: "testenv/foreign/openntpd", "machineadm": "host/cmd/machineadm",
	}))
	foreign.OpenNTPD(t, filepath.Join(dir, "machineadm"), func(root string) error {
		return foreign.CopyFile(filepath.Join(dir, binary), filepath.Join(root, "usr/libexec/machineadm", binary))
	}, nil)
}
