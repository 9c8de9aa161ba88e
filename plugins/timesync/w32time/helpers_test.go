package main

import (
	"embed"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// outputs are in the program because it also runs under wine, without this directory.
//
//go:embed testdata/w32tm
var outputs embed.FS

func document(t testing.TB, spec string) v1alpha1.Timesync {
	t.Helper()
	var doc v1alpha1.Timesync
	require.NoError(t, json.Unmarshal([]byte(spec), &doc.Spec))
	return doc
}

// output reads an output of w32tm, with the line ends of Windows.
func output(t testing.TB, name string) machine.Result {
	t.Helper()
	text, err := outputs.ReadFile("testdata/w32tm/" + name + ".txt")
	require.NoError(t, err)
	return machine.Result{Stdout: []byte(strings.ReplaceAll(string(text), "\n", "\r\n"))}
}

// server2022 returns a machine with the defaults of Windows Server outside a domain, without the triggers.
func server2022(t *testing.T) *machinetest.Fixture {
	t.Helper()
	f := machinetest.New(t)
	f.Machine.Target.OS = "windows"
	f.Services.Put(serviceName+".service", machine.ServiceState{Enabled: true, Active: "active", Sub: "running", MainPID: 1000})
	put := func(key, name string, data machine.RegistryData) { f.Registry.Put(serviceKey+key, name, data) }
	put("Parameters", "NtpServer", machine.RegistryText("time.windows.com,0x8"))
	put("Parameters", "Type", machine.RegistryText("NTP"))
	put(`TimeProviders\NtpClient`, "Enabled", machine.RegistryNumber(1))
	put("Config", "MinPollInterval", machine.RegistryNumber(10))
	put("Config", "MaxPollInterval", machine.RegistryNumber(15))
	put("Config", "UpdateInterval", machine.RegistryNumber(360000))
	put("Config", "MaxAllowedPhaseOffset", machine.RegistryNumber(1))
	put("Config", "MaxPosPhaseCorrection", machine.RegistryNumber(54000))
	put("Config", "MaxNegPhaseCorrection", machine.RegistryNumber(54000))
	return f
}

// apply makes the registry and the service match the values of a document, without asking its servers.
func apply(t *testing.T, m sdk.Machine, spec string) error {
	t.Helper()
	want, _, violations := resolve(document(t, spec))
	require.Empty(t, violations)
	changes, err := sdk.Activate(t.Context(), m, sdk.Activation{Unit: serviceName, Enable: true, Registry: desired(want), Healthy: healthy})
	require.NoError(t, err)
	for _, change := range changes {
		err = errors.Join(err, change.Do(t.Context(), quiet{}))
	}
	return err
}

type quiet struct{}

func (quiet) Report(string) {}

func (quiet) Warn(string, string) {}

func (quiet) RequestReboot(sdk.Reboot) {}
