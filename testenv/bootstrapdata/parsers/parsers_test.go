// Package parsers reads the golden files of host/controller/wrap with the Go libraries of the programs that read such data on a
// machine: Ignition, Talos and the agent of an infrastructure provider. The module is nested, so that their module graphs stay out of the product's.
package parsers

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/coreos/ignition/v2/config"
	types "github.com/coreos/ignition/v2/config/v3_6_experimental/types"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vincent-petithory/dataurl"
)

const goldens = "../../../host/controller/wrap/testdata"

func golden(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(goldens, name))
	require.NoError(t, err)
	return data
}

// TestIgnition parses the configuration in every version, as Ignition 2.24 does, without an error or a warning.
func TestIgnition(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3.0", "3.1", "3.2", "3.3", "3.4", "3.5"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			parsed, report, err := config.Parse(golden(t, "ignition-"+version+".json"))
			require.NoError(t, err, report.String())
			assert.Empty(t, report.Entries)
			checkIgnition(t, parsed)
		})
	}
}

func checkIgnition(t *testing.T, parsed types.Config) {
	t.Helper()
	require.Len(t, parsed.Storage.Files, 1)
	file := parsed.Storage.Files[0]
	assert.Equal(t, "/etc/machineadm/node.yaml", file.Path)
	assert.Equal(t, 0o600, *file.Mode)
	assert.True(t, *file.Overwrite)
	assert.Nil(t, file.Contents.Compression)
	url, err := dataurl.DecodeString(*file.Contents.Source)
	require.NoError(t, err)
	assert.Equal(t, string(golden(t, "plain.yaml")), string(url.Data))
	require.Len(t, parsed.Systemd.Units, 1)
	assert.True(t, *parsed.Systemd.Units[0].Enabled)
	assert.Contains(t, *parsed.Systemd.Units[0].Contents, "\nExecStart=/usr/bin/env machineadm --bootstrap --path /etc/machineadm/node.yaml\n")
}

// TestTalos loads the document alone, and behind the configuration of a machine, as Talos 1.12 does.
func TestTalos(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"talos.yaml", "talos-with-part.yaml"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provider, err := configloader.NewFromBytes(golden(t, name))
			require.NoError(t, err)
			services := provider.ExtensionServiceConfigs()
			require.Len(t, services, 1)
			assert.Equal(t, "machineadm", services[0].Name())
			require.Len(t, services[0].ConfigFiles(), 1)
			assert.Equal(t, "/etc/machineadm/node.yaml", services[0].ConfigFiles()[0].MountPath())
			assert.Equal(t, string(golden(t, "plain.yaml")), services[0].ConfigFiles()[0].Content())
			if name != "talos.yaml" {
				assert.Equal(t, "worker", provider.Machine().Type().String())
			}
		})
	}
}
