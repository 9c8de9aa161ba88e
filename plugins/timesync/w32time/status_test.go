package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"status-en":             "the selected source is ntp1.example.com,0x8",
		"status-de":             "the selected source is ntp1.example.com,0x8",
		"status-fr":             "the selected source is ntp1.example.com,0x8",
		"status-local-clock":    "not synchronized, the selected source is Local CMOS Clock",
		"status-unsynchronized": "not synchronized, the selected source is Local CMOS Clock",
	} {
		f := machinetest.New(t)
		f.Commands.On("w32tm /query /status", output(t, name))
		s, err := status(t.Context(), f.Machine, false)
		require.NoError(t, err)
		require.Equal(t, want, s.String(), name)
		f.Commands.On("w32tm /query /peers", output(t, "peers-en"))
		s, err = status(t.Context(), f.Machine, true)
		require.NoError(t, err)
		require.Equal(t, []string{"ntp1.example.com,0x8: Active", "2001:db8::1,0x8: Pending"}, s.Sources)
	}
}

// TestStatusRefused: what is not a status is an error, and a service that does not run has its own.
func TestStatusRefused(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	synchronized := string(output(t, "status-en").Stdout)
	for _, text := range []string{"", "OK\n", strings.Replace(synchronized, "0xC0000201", "", 1), strings.Replace(synchronized, ": 3", ": x", 1)} {
		f.Commands.On("w32tm /query /status", machine.Result{Stdout: []byte(text)})
		_, err := status(t.Context(), f.Machine, false)
		require.ErrorContains(t, err, "w32tm /query /status has an unknown form")
	}
	f.Commands.On("w32tm /query /status", machine.Result{ExitCode: notRunning, Stdout: []byte("0x80070426")})
	err := healthy(t.Context(), f.Machine, nil)
	e := pluginv1.AsError(err)
	require.Equal(t, pluginv1.CodePrecondition, e.Code)
	require.Contains(t, e.Message, "W32Time does not run")
	f.Commands.On("w32tm /query /status", machine.Result{ExitCode: 1})
	require.ErrorContains(t, healthy(t.Context(), f.Machine, nil), "w32tm: exit code 1")
}

// TestStatusAsksOnce: a converged plan asks the service manager once and w32tm once.
func TestStatusAsksOnce(t *testing.T) {
	t.Parallel()
	f := server2022(t)
	f.Commands.On("w32tm /query /status", output(t, "status-en"))
	p, err := plan(t.Context(), f.Machine, document(t, `{"waitForSync":{}}`))
	require.NoError(t, err)
	require.Empty(t, p.Changes)
	require.Len(t, f.Commands.Calls(), 1)
}

func FuzzStatus(f *testing.F) {
	f.Add(string(output(f, "status-fr").Stdout), string(output(f, "peers-en").Stdout))
	f.Add(strings.Replace(string(output(f, "status-en").Stdout), ": 3", ": 99999999999999999999", 1), "\n\n: \n:")
	f.Fuzz(func(t *testing.T, report, peers string) {
		commands := machinetest.NewRunner(t)
		commands.On("w32tm /query /status", machine.Result{Stdout: []byte(report)})
		commands.On("w32tm /query /peers", machine.Result{Stdout: []byte(peers)})
		s, err := status(t.Context(), sdk.Machine{Commands: commands}, true)
		if err == nil {
			require.NotContains(t, s.String(), "\n")
		}
	})
}
