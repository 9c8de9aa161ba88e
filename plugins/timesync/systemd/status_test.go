package main

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// reply reads an answer of systemd 252 to busctl.
func reply(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/busctl/" + name + ".json")
	require.NoError(t, err)
	return string(text)
}

func TestParseState(t *testing.T) {
	t.Parallel()
	both := []string{"127.0.0.2", "127.0.0.3"}
	synchronized := reply(t, "synchronized")
	for name, c := range map[string]struct {
		text string
		want state
	}{
		"no answer yet": {reply(t, "waiting"), state{servers: both, server: "127.0.0.2"}},
		"synchronized":  {synchronized, state{both, "127.0.0.2", 2, 252 * time.Millisecond}},
		"ignored answer": {
			strings.Replace(synchronized, "false,2,", "true,9,", 1), state{both, "127.0.0.2", 9, 0},
		},
		"behind by an hour, so the clock was stepped": {
			strings.Replace(synchronized, "1795366313926357,1795366313926500", "1795369913926357,1795369913926500", 1),
			state{both, "127.0.0.2", 2, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseState([]byte(c.text))
			require.NoError(t, err)
			got.offset = got.offset.Round(time.Millisecond)
			require.Equal(t, c.want, got)
		})
	}
	wrong := strings.Replace(synchronized, "false,2,", `false,"2",`, 1)
	for _, text := range []string{"", "{}", `{"data":[{}]}`, "Call failed", wrong} {
		_, err := parseState([]byte(text))
		require.ErrorContains(t, err, "the output of busctl", text)
	}
}

// TestStatus: the clock is synchronized only with the servers of the document.
func TestStatus(t *testing.T) {
	t.Parallel()
	ours := servers(server("a"), server("b"))
	beside := ours
	beside.KeepDistributionSources = true
	for name, c := range map[string]struct {
		state        state
		want         settings.Settings
		synchronized bool
		text         string
	}{
		"synchronized":         {state{[]string{"a", "b"}, "b", 1, 0}, ours, true, "the selected source is b"},
		"no answer":            {state{[]string{"a", "b"}, "a", 0, 0}, ours, false, "a: no answer so far"},
		"offline":              {state{[]string{"a", "b"}, "", 0, 0}, ours, false, "waits for a network connection"},
		"server of a link":     {state{[]string{"a", "b"}, "dhcp", 3, 0}, ours, false, "no server of the document answers"},
		"earlier servers":      {state{[]string{"old"}, "old", 3, 0}, ours, false, "other servers than the document: old"},
		"another order":        {state{[]string{"b", "a"}, "b", 3, 0}, ours, false, "other servers than the document: b a"},
		"one more":             {state{[]string{"a", "b", "c"}, "a", 3, 0}, ours, false, "other servers"},
		"beside others":        {state{[]string{"c", "a", "b"}, "c", 3, 0}, beside, true, "the selected source is c"},
		"beside others, early": {state{[]string{"c"}, "c", 3, 0}, beside, false, "other servers"},
		"no servers":           {state{nil, "fallback", 3, 0}, settings.Settings{}, true, "the selected source is fallback"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status := c.state.status(c.want)
			require.Equal(t, c.synchronized, status.Synchronized)
			require.Contains(t, status.String(), c.text)
		})
	}
}

// TestStatusAsksOnce: one client call has all of it.
func TestStatusAsksOnce(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	f.Commands.On("busctl ...", machine.Result{Stdout: []byte(reply(t, "synchronized"))})
	status, err := statusOf(servers(server("127.0.0.2"), server("127.0.0.3")))(t.Context(), f.Machine, true)
	require.NoError(t, err)
	require.True(t, status.Synchronized)
	require.Len(t, f.Commands.Calls(), 1)
	f.Commands.On("busctl ...", machine.Result{ExitCode: 1, Stderr: []byte("Call failed")})
	_, err = statusOf(settings.Settings{})(t.Context(), f.Machine, true)
	require.ErrorContains(t, err, "ask timesyncd over D-Bus")
}

// TestHealthy reads what the running process says about the file of the document.
func TestHealthy(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	f.Services.Put(unitName, machine.ServiceState{Active: "active", InvocationID: "0123"})
	const call = "journalctl --quiet --no-pager --output=cat _SYSTEMD_INVOCATION_ID=0123"
	absent := []sdk.FileSpec{{Path: ownFile}}
	other := "/etc/systemd/timesyncd.conf:3: Unknown key 'X' in section [Time], ignoring.\nContacted time server\n"
	f.Commands.On(call, machine.Result{Stdout: []byte(other)})
	require.NoError(t, healthy(settings.Settings{}, absent)(t.Context(), f.Machine, nil))
	complaint := ownFile + ":6: Unknown key 'Bogus' in section [Time], ignoring.\n"
	f.Commands.On(call, machine.Result{Stdout: []byte("Starting\n" + complaint)})
	err := healthy(settings.Settings{}, absent)(t.Context(), f.Machine, nil)
	known, ok := errors.AsType[*pluginv1.Error](err)
	require.True(t, ok)
	require.True(t, known.Final)
	require.Equal(t, "systemd-timesyncd.service ignores line 6 of "+ownFile, known.Message)
	require.Equal(t, complaint, known.Detail)
}

// TestOtherServers: after an activation, timesyncd has the servers of the document. Without D-Bus it is not asked for them.
func TestOtherServers(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	f.Services.Put(unitName, machine.ServiceState{Active: "active", InvocationID: "0123"})
	f.Commands.On("journalctl ...", machine.Result{})
	f.Commands.On("busctl ...", machine.Result{Stdout: []byte(reply(t, "synchronized"))})
	ask := func(addresses ...string) error {
		var all []settings.Source
		for _, a := range addresses {
			all = append(all, server(a))
		}
		return healthy(servers(all...), nil)(t.Context(), f.Machine, nil)
	}
	require.NoError(t, ask("127.0.0.2", "127.0.0.3"))
	require.ErrorContains(t, ask("127.0.0.2"), "timesyncd has other servers than the document: 127.0.0.2 127.0.0.3")
	require.ErrorContains(t, ask("127.0.0.4"), "timesyncd has other servers")
	f.Commands.On("busctl ...", machine.Result{ExitCode: 1, Stderr: []byte("Call failed")})
	require.NoError(t, ask("127.0.0.4"))
}

// FuzzParseState: any output gives a state or an error, and an offset is below the one that timesyncd steps.
func FuzzParseState(f *testing.F) {
	f.Add([]byte(reply(f, "waiting")))
	f.Add([]byte(reply(f, "synchronized")))
	f.Add([]byte(`{"data":[{"NTPMessage":{"data":[0,0,0,0,0,0,0,0,0,18446744073709551615,0,1,false,1]}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parseState(text)
		require.Less(t, s.offset.Abs(), largestSlew)
		if err == nil {
			require.True(t, json.Valid(text))
			require.NotPanics(t, func() { _ = s.status(servers(server("a"))).String() })
		} else {
			require.True(t, slices.Equal(s.servers, nil))
		}
	})
}
