//go:build linux

package main

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

func document(t *testing.T, spec string) v1alpha1.Timesync {
	t.Helper()
	var doc v1alpha1.Timesync
	require.NoError(t, json.Unmarshal([]byte(spec), &doc.Spec))
	return doc
}

// running returns a machine on which timesyncd runs with the server 127.0.0.2 of a document, and then 127.0.0.3.
func running(t *testing.T) *machinetest.Fixture {
	t.Helper()
	f := machinetest.New(t)
	f.Services.Put(unitName, machine.ServiceState{
		Enabled: true, Active: "active", Sub: "running", InvocationID: "0123",
	})
	f.WriteFiles(t, map[string]string{ownFile: render(desired(servers(server("127.0.0.2"), server("127.0.0.3"))))})
	return f
}

const (
	both   = `{"servers":[{"address":"127.0.0.2"},{"address":"127.0.0.3"}],"waitForSync":{"maxOffset":"300ms"}}`
	closer = `{"servers":[{"address":"127.0.0.2"},{"address":"127.0.0.3"}],"waitForSync":{"maxOffset":"200ms"}}`
)

// TestPlan: a synchronized clock needs no change, and the daemon is asked once.
func TestPlan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec, reply string
		changes     []string
	}{
		"synchronized":     {both, "synchronized", nil},
		"not synchronized": {both, "waiting", []string{"synchronize"}},
		"offset too large": {closer, "synchronized", []string{"synchronize"}},
		"another server":   {`{"servers":[{"address":"127.0.0.4"}]}`, "", []string{"activate:" + unitName}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := running(t)
			calls := 0
			if c.reply != "" {
				calls = 1
				f.Commands.On("busctl ...", machine.Result{Stdout: []byte(reply(t, c.reply))})
			}
			p, err := plan(t.Context(), f.Machine, document(t, c.spec))
			require.NoError(t, err)
			var changes []string
			for _, change := range p.Changes {
				changes = append(changes, change.ID)
			}
			require.Equal(t, c.changes, changes)
			require.Len(t, f.Commands.Calls(), calls)
		})
	}
}

// TestLaterFile: the refusal names the file and what it sets.
func TestLaterFile(t *testing.T) {
	t.Parallel()
	f := running(t)
	f.WriteFiles(t, map[string]string{
		"/usr/lib/systemd/timesyncd.conf.d/zzz.conf": "[Time]\nPollIntervalMinSec=64\nFallbackNTP=x\n",
	})
	_, err := plan(t.Context(), f.Machine, document(t, both))
	e := pluginv1.AsError(err)
	require.Equal(t, pluginv1.CodePrecondition, e.Code)
	require.Contains(t, e.Message, "/usr/lib/systemd/timesyncd.conf.d/zzz.conf sets FallbackNTP")
	require.Contains(t, e.Hint, "sorts before zz-machineadm.conf")
}

// TestManual: the table has each setting of timesyncd.conf(5).
func TestManual(t *testing.T) {
	t.Parallel()
	require.ElementsMatch(t, strings.Fields(
		"NTP FallbackNTP RootDistanceMaxSec PollIntervalMinSec PollIntervalMaxSec ConnectionRetrySec SaveIntervalSec"),
		slices.Collect(maps.Keys(manual())))
}

// TestDefeats: a root distance of others with which timesyncd ignores usual servers is the default, or the document's.
func TestDefeats(t *testing.T) {
	t.Parallel()
	const (
		server = `{"servers":[{"address":"a"}]}`
		main   = "/etc/systemd/timesyncd.conf"
		site   = "/run/systemd/timesyncd.conf.d/50-site.conf"
	)
	for _, c := range []struct{ file, value, spec, want string }{
		{main, "RootDistanceMaxSec=1", server, "5"},
		{site, "RootDistanceMaxSec = 100 ms", server, "5"},
		{"/usr/lib/systemd/timesyncd.conf", "RootDistanceMaxSec=4.5s", `{"servers":[{"address":"a"}],"keepDistributionSources":true}`, "5"},
		{main, "RootDistanceMaxSec=30", server, ""},
		{site, "RootDistanceMaxSec=1min", server, ""},
		{site, "RootDistanceMaxSec=1min 500ms", server, ""},
		{main, "RootDistanceMaxSec=1s500ms", server, "5"},
		{main, "RootDistanceMaxSec=2 s 1 ms", server, "5"},
		{site, "RootDistanceMaxSec=infinity", server, ""},
		{site, "RootDistanceMaxSec=1day", server, ""},
		{site, "RootDistanceMaxSec=x", server, ""}, // timesyncd ignores it
		{main, "RootDistanceMaxSec=1", `{"fallback":["a"]}`, ""},
		{main, "ConnectionRetrySec=90\nSaveIntervalSec=1\nPollIntervalMinSec=4096", server, ""},
		{main, "RootDistanceMaxSec=1", `{"servers":[{"address":"a"}],"providerConfig":{"rootDistanceMaxSec":2}}`, "2"},
		{main, "", `{"servers":[{"address":"a"}],"providerConfig":{"rootDistanceMaxSec":30}}`, "30"},
	} {
		f := machinetest.New(t)
		f.WriteFiles(t, map[string]string{c.file: "[Time]\n" + c.value + "\n"})
		want, distance, violations := resolve(document(t, c.spec))
		require.Empty(t, violations)
		own := desired(want)
		if distance != nil {
			own = append(own, assignment{rootDistance, seconds(*distance)})
		}
		own, err := withDefaults(f.Machine, own, want)
		require.NoError(t, err)
		got := ""
		for _, a := range own {
			if a.key == rootDistance {
				got += a.value
			}
		}
		require.Equal(t, c.want, got, c.value)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	f := running(t)
	f.WriteFiles(t, map[string]string{linkState: "OPER_STATE=routable\nDNS=192.0.2.1\nNTP=192.0.2.5 ntp.link.example\n"})
	for spec, want := range map[string]struct{ field, message string }{
		`{"servers":[{"address":"a"}]}`:                                {"", "uses servers of systemd-networkd: 192.0.2.5 ntp.link.example"},
		`{"servers":[{"address":"a"}],"keepDistributionSources":true}`: {"spec.keepDistributionSources", "servers of other files first"},
		`{"servers":[{"address":"a"}],"fallback":["b"]}`:               {"spec.fallback", "never uses"},
		`{"fallback":["b"]}`:                                           {},
	} {
		p, err := plan(t.Context(), f.Machine, document(t, spec))
		require.NoError(t, err)
		if want.message == "" {
			require.Empty(t, p.Warnings, spec)
			continue
		}
		require.Equal(t, want.field, p.Warnings[0].Field, spec)
		require.Contains(t, p.Warnings[0].Message, want.message)
	}
}

// TestCrash: wherever the process ends, the next run finishes, with the other daemon off.
func TestCrash(t *testing.T) {
	t.Parallel()
	doc := document(t, `{"fallback":["127.0.0.4"],"waitForSync":{"maxOffset":"300ms"}}`)
	synctest.Test(t, func(t *testing.T) {
		machinetest.Crash(t, func() *machinetest.Fixture {
			f := running(t)
			f.Services.Put("chrony.service", machine.ServiceState{Active: "active", Sub: "running", InvocationID: "1", Enabled: true})
			f.Commands.On("journalctl ...", machine.Result{})
			f.Commands.On("busctl ...", machine.Result{Stdout: []byte(reply(t, "synchronized"))})
			return f
		}, func(ctx context.Context, m machine.Machine) (sdk.Plan, error) { return plan(ctx, m, doc) })
	})
}
