package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/timesync/internal/directives"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

const (
	question       = "ntpq -n -c rv 0 leap,stratum,refid,offset"
	synchronized   = "leap=00, stratum=3, refid=192.0.2.1, offset=0.001234\n"
	unsynchronized = "leap=11, stratum=16, refid=INIT, offset=0.0\n"
	measuring      = "leap=11, stratum=3, refid=192.0.2.1, offset=0.0\n" // after a step, as seen in a virtual machine
	header         = "     remote           refid      st t when poll reach   delay   offset   jitter\n" +
		"===============================================================================\n"
	peers = header +
		"*192.0.2.1       198.51.100.7     2 u   21   64  377   0.2134   0.0020   0.0312\n" +
		" pool.example.co .POOL.          16 p    -    8    0   0.0000   0.0000   0.0001\n" +
		"x2001:db8::1     .GPS.            1 u   21   64   17   0.2134 -3600000   0.0312\n" +
		" 192.0.2.2       .INIT.          16 u    -   64    0   0.0000   0.0000   0.0001\n"
	own = "/etc/ntpsec/ntp.d/zz-machineadm.conf"
)

func timesync(t testing.TB, spec string) v1alpha1.Timesync {
	t.Helper()
	doc := v1alpha1.Timesync{Header: v1alpha1.Header{Metadata: v1alpha1.Metadata{Name: "site-time"}}}
	require.NoError(t, json.Unmarshal([]byte(spec), &doc.Spec))
	return doc
}

// live is a machine on which ntpd of NTPsec runs and answers.
func live(t *testing.T) *machinetest.Fixture {
	t.Helper()
	f := machinetest.New(t)
	f.Services.Put(ntpsecUnit, machine.ServiceState{Active: "active", Sub: "running", InvocationID: "0f", Enabled: true})
	f.WriteFiles(t, map[string]string{
		"/etc/ntpsec/ntp.conf": "pool 2.debian.pool.ntp.org iburst\n", "/etc/default/ntpsec": "IGNORE_DHCP=\"\"\n",
	})
	f.Commands.On(question, machine.Result{Stdout: []byte(synchronized)})
	f.Commands.On("ntpq -n -p", machine.Result{Stdout: []byte(peers)})
	return f
}

type recorder struct{}

func (recorder) Report(string) {}

func (recorder) Warn(string, string) {}

func (recorder) RequestReboot(sdk.Reboot) {}

// TestConverged: what matches is no change once the clock is synchronized, and that is the only question to ntpd.
func TestConverged(t *testing.T) {
	t.Parallel()
	f := live(t)
	f.WriteFiles(t, map[string]string{own: "# Written by machineadm for a Timesync document. Changes are overwritten.\n"})
	doc := timesync(t, `{"waitForSync":{"maxOffset":"1ms"}}`)
	for output, changes := range map[string]int{
		synchronized: 0, unsynchronized: 1, strings.Replace(synchronized, "0.001234", "-1.5", 1): 1,
	} {
		f.Commands.On(question, machine.Result{Stdout: []byte(output)})
		before := len(f.Commands.Lines())
		p, err := plan(t.Context(), f.Machine, doc)
		require.NoError(t, err)
		assert.Len(t, p.Changes, changes, output)
		assert.Len(t, f.Commands.Lines(), before+1)
	}
}

// TestRollback: ntpd runs on with a faulty configuration, so the journal of its invocation decides.
func TestRollback(t *testing.T) {
	t.Parallel()
	f := live(t)
	f.Commands.On("journalctl --sync", machine.Result{})
	f.Commands.OnFunc("journalctl --quiet ...", func(context.Context, machine.Command) (machine.Result, error) {
		if _, err := f.Machine.FS.Stat(own); errors.Is(err, fs.ErrNotExist) {
			return machine.Result{}, nil
		}
		return machine.Result{Stdout: []byte("CONFIG: syntax error in " + own + " line 2, column 0\n")}, nil
	})
	p, err := plan(t.Context(), f.Machine, timesync(t, `{"providerConfig":{"directives":["tos minsane 0"]}}`))
	require.NoError(t, err)
	require.Len(t, p.Changes, 1)
	err = p.Changes[0].Do(t.Context(), recorder{})
	require.ErrorContains(t, err, "ntpd does not accept its configuration: syntax error in "+own+" line 2, column 0")
	_, err = f.Machine.FS.Stat(own)
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.Equal(t, []string{"restart " + ntpsecUnit, "restart " + ntpsecUnit}, f.Services.Calls())
}

// TestCrash: wherever the process ends, the next run finishes, with the other daemon and the servers of DHCP off.
func TestCrash(t *testing.T) {
	t.Parallel()
	doc := timesync(t, `{"servers":[{"address":"127.0.0.1","nts":true}],"waitForSync":{}}`) // nothing answers there
	synctest.Test(t, func(t *testing.T) {
		machinetest.Crash(t, func() *machinetest.Fixture {
			f := live(t)
			f.Services.Put("chrony.service", machine.ServiceState{Active: "active", Sub: "running", InvocationID: "1", Enabled: true})
			f.Commands.On("journalctl ...", machine.Result{})
			return f
		}, func(ctx context.Context, m machine.Machine) (sdk.Plan, error) { return plan(ctx, m, doc) })
	})
}

// TestFaults: what ntpd logs about its configuration.
func TestFaults(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"CONFIG: syntax error in /etc/ntpsec/ntp.d/zz-machineadm.conf line 2, column 5":     "line 2, column 5",
		"syntax error in /etc/ntp.conf line 7, column 1":                                    "/etc/ntp.conf line 7, column 1",
		"AUTH: authreadkeys: file /etc/ntpsec/ntp.keys: Permission denied":                  "Permission denied",
		"AUTH: authreadkeys: unknown auth type 7, AES-128":                                  "unknown auth type 7",
		"REFCLOCK: refclock_pps: /dev/pps0 open failed: No such file or directory":          "/dev/pps0 open failed",
		"AUTH: authreadkeys: reading /etc/ntpsec/ntp.keys\nCONFIG: restrict nopeer ignored": "",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			f := live(t)
			f.Commands.On("journalctl --sync", machine.Result{})
			f.Commands.On("journalctl --quiet --no-pager --output=cat _SYSTEMD_INVOCATION_ID=0f", machine.Result{Stdout: []byte(line + "\n")})
			err := healthy(ntpsecUnit)(t.Context(), f.Machine, nil)
			if want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "ntpd does not accept its configuration: ")
			require.ErrorContains(t, err, want)
		})
	}
}

// TestRefused: what ntpd, or the reference implementation alone, cannot express is refused at its field.
func TestRefused(t *testing.T) {
	t.Parallel()
	const pulse = `"refClocks":[{"driver":"pps","device":"/dev/pps0"}]`
	for _, c := range []struct {
		reference   bool
		spec, field string
	}{
		{false, `{"servers":[{"address":"a","minPoll":-2}]}`, "spec.servers[0].minPoll"},
		{false, `{"pools":[{"address":"a","maxSources":2}]}`, "spec.pools[0].maxSources"},
		{false, `{"pools":[{"address":"a","nts":true}]}`, "spec.pools[0].nts"},
		{false, `{"servers":[{"address":"a","key":{"id":1,"type":"SHA1","value":{"value":"HEX:0001020304050607"}}}]}`, "spec.servers[0].key.value"},
		{false, `{"servers":[{"address":"a"}],` + pulse + `}`, "spec.refClocks[0]"},
		{false, `{"profile":"azure"}`, "spec.profile"},
		{false, `{"rtcSync":false}`, "spec.rtcSync"},
		{false, `{"rtcSync":true,"makeStep":{"threshold":"501ms","limit":-1}}`, "spec.rtcSync"},
		{false, `{"makeStep":{"threshold":"1s","limit":3}}`, "spec.makeStep.limit"},
		{false, `{"providerConfig":{"directives":["server a\nserver b"]}}`, "spec.providerConfig.directives[0]"},
		{true, `{"servers":[{"address":"a","maxPoll":2}]}`, "spec.servers[0].maxPoll"},
		{true, `{"servers":[{"address":"a","nts":true}]}`, "spec.servers[0].nts"},
		{true, `{"servers":[{"address":"a","key":{"id":1,"type":"SHA256","value":{"value":"c4n4ry-of-a-key"}}}]}`, "spec.servers[0].key.type"},
		{true, `{"servers":[{"address":"a","prefer":true}],` + pulse + `}`, "spec.refClocks[0]"},
	} {
		t.Run(c.spec, func(t *testing.T) {
			t.Parallel()
			f := machinetest.New(t)
			if c.reference {
				f.Services.Put("ntp.service", machine.ServiceState{})
				f.WriteFiles(t, map[string]string{"/etc/ntp.conf": "pool 2.debian.pool.ntp.org iburst\n"})
			}
			_, err := plan(t.Context(), f.Machine, timesync(t, c.spec))
			known := pluginv1.AsError(err)
			require.NotEmpty(t, known.Violations, "%v", err)
			assert.Equal(t, c.field, known.Violations[0].Field)
			assert.NotContains(t, err.Error(), "c4n4ry")
		})
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	f := live(t)
	s, err := status(t.Context(), f.Machine, true, true)
	require.NoError(t, err)
	assert.Equal(t, 1234*time.Nanosecond, s.Offset)
	assert.Equal(t, "the selected source is 192.0.2.1 (192.0.2.1: selected, stratum 2, offset 2µs; "+
		"2001:db8::1: a falseticker, stratum 1, offset -1h0m0s; 192.0.2.2: no answer so far)", s.String())

	f.Commands.On(question, machine.Result{Stdout: []byte(measuring)})
	s, err = status(t.Context(), f.Machine, false, true)
	require.NoError(t, err)
	assert.True(t, s.Synchronized)
	assert.Equal(t, 2*time.Microsecond, s.Offset, "the selected source's")
	f.Commands.On("ntpq -n -p", machine.Result{Stdout: []byte(strings.Replace(peers, "*192", " 192", 1))})
	s, err = status(t.Context(), f.Machine, false, true)
	require.NoError(t, err)
	assert.False(t, s.Synchronized)

	f.Commands.On(question, machine.Result{Stdout: []byte(unsynchronized)})
	s, err = status(t.Context(), f.Machine, false, true)
	require.NoError(t, err)
	assert.Equal(t, "not synchronized, no source is selected", s.String())

	f.Commands.On(question, machine.Result{Stderr: []byte("***Socket error; probably ntpd is not running\n\n")})
	_, err = status(t.Context(), f.Machine, false, true)
	require.EqualError(t, err, "ntpd does not answer: ***Socket error; probably ntpd is not running")
	for _, output := range []string{"\n,=\n", "leap=00", "leap=00, stratum=x", "stratum=2", "leap=00, stratum=2, offset=?"} {
		_, err := parseSystem(output)
		require.Error(t, err, output)
	}
}

func FuzzStatus(f *testing.F) {
	f.Add(synchronized, peers)
	f.Add("leap=00,\r\nstratum=1, refid=PPS", header+"o127.127.22.0 .PPS. 0 l 1 16 377 0 0 0\n")
	f.Fuzz(func(t *testing.T, system, list string) {
		commands := machinetest.NewRunner(t)
		commands.On(question, machine.Result{Stdout: []byte(system)})
		commands.On("ntpq -n -p", machine.Result{Stdout: []byte(list)})
		s, err := status(t.Context(), sdk.Machine{Commands: commands}, true, true)
		if err == nil {
			require.NotEmpty(t, s.String())
		}
	})
}

// TestRender covers what the conformance cases do not.
func TestRender(t *testing.T) {
	t.Parallel()
	four, twelve, off := 4, 12, false
	for want, s := range map[string]settings.Source{
		"server a iburst":                             {Address: "a"},
		"pool a prefer minpoll 4":                     {Address: "a", Pool: true, IBurst: &off, Prefer: true, MinPoll: &four},
		"server a iburst minpoll 4 maxpoll 4":         {Address: "a", MaxPoll: &four},
		"server a iburst minpoll 12 maxpoll 12 nts":   {Address: "a", MinPoll: &twelve, NTS: true},
		"server a iburst minpoll 4 maxpoll 12 key 40": {Address: "a", MinPoll: &four, MaxPoll: &twelve, Key: &settings.Key{ID: 40}},
	} {
		assert.Equal(t, want, directives.Source(s))
	}
	for sources, want := range map[int]int{0: 1, 1: 1, 2: 1, 3: 2, 4: 2, 5: 3, 9: 3} {
		assert.Equal(t, want, minSane(settings.Settings{Sources: make([]settings.Source, sources)}), sources)
	}
}

func TestKeyText(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"8-chars!": "8-chars!", "ten-chars.": "ten-chars.", "HEX:3031323334353637": "01234567",
		"eleven-char": "656c6576656e2d63686172", "HEX:00FF00FF00FF00FF00FF00": "00ff00ff00ff00ff00ff00",
	} {
		text, err := keyText(settings.Key{Value: v1alpha1.NewSecret([]byte(value))})
		require.NoError(t, err)
		assert.Equal(t, want, text)
	}
	for _, value := range []string{"8-chars#", "HEX:0001020304050607", "HEX:20313233343536373839"} {
		_, err := keyText(settings.Key{Value: v1alpha1.NewSecret([]byte(value))})
		require.ErrorContains(t, err, "ntpd reads a key of less than 11 bytes as text")
		require.NotContains(t, err.Error(), value)
	}
}

// TestAcceptedConfigurations: what ntpd accepts is no defect of this plugin, and one apply settles it.
func TestAcceptedConfigurations(t *testing.T) {
	t.Parallel()
	const main, site = "/etc/ntp.conf", "/etc/site.conf"
	for name, files := range map[string]map[string]string{
		"a file twice":                {main: "includefile /etc/site.conf\nincludefile site.conf\n", site: "server a\n"},
		"a file that includes itself": {main: "includefile /etc/ntp.conf\nserver a\n"},
		"itself by a link":            {main: "includefile /etc/site.conf\nserver a\n", site: "-> ntp.conf"},
		"two names of one file":       {main: "includefile /etc/site.conf\nincludefile /etc/other.conf\n", site: "server a\n", "/etc/other.conf": "-> site.conf"},
		"keys in the main file":       {main: "keys /etc/ntp.conf\nserver a\n"},
		"keys in an included file":    {main: "keys /etc/site.conf\nincludefile /etc/other.conf\n", site: "server a\n", "/etc/other.conf": "-> site.conf"},
		"two blocks":                  {main: "# BEGIN machineadm\nserver a\n# END machineadm\ntos x\n# BEGIN machineadm\nserver a\n# END machineadm\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files["/etc/passwd"], files["/usr/lib/systemd/system/ntpd.service"] = "ntp:x:12:34::/:/bin/false\n", "[Install]\nWantedBy=multi-user.target\n"
			const document = `{"apiVersion":"` + v1alpha1.APIVersion + `","kind":"Timesync","metadata":{"name":"t"},"spec":{"servers":[{"address":"ntp1.example.com"}]}}`
			require.NoError(t, machinetest.Converge(t, files, document, sdk.For(v1alpha1.APIVersion, v1alpha1.KindTimesync, sdk.PhasePreparation, plan)))
		})
	}
}
