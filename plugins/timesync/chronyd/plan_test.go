package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

const (
	synchronized   = "C0000201,192.0.2.1,3,1795366800.5,0.000001234,-0.000002,0.0001,-1.5,0.01,0.2,0.0005,0.0003,64.2,Normal\n"
	unsynchronized = "7F7F0101,,0,0.0,0.000000000,0.0,0.0,0.0,0.0,0.0,1.0,1.0,0.0,Not synchronised\n"
	sources        = "^,*,192.0.2.1,2,6,377,12,0.000001,0.000002,0.0003\n^,?,192.0.2.2,0,6,0,4294967295,0.0,0.0,0.0\n"
)

func timesync(t testing.TB, spec string) v1alpha1.Timesync {
	t.Helper()
	doc := v1alpha1.Timesync{Header: v1alpha1.Header{Metadata: v1alpha1.Metadata{Name: "site-time"}}}
	require.NoError(t, json.Unmarshal([]byte(spec), &doc.Spec))
	return doc
}

// live is a machine on which chronyd runs with Debian's configuration.
func live(t testing.TB) *machinetest.Fixture {
	t.Helper()
	f := machinetest.New(t)
	f.Services.Put("chrony.service", machine.ServiceState{Active: "active", Sub: "running", InvocationID: "1", Enabled: true})
	f.WriteFiles(t, map[string]string{"/etc/chrony/chrony.conf": "confdir /etc/chrony/conf.d\npool 2.debian.pool.ntp.org iburst\n"})
	f.Commands.On("chronyc -n -c tracking", machine.Result{Stdout: []byte(synchronized)})
	return f
}

// TestPlanLive: with waitForSync, what matches is no change once the daemon reports that the clock is synchronized, and
// that is its only question.
func TestPlanLive(t *testing.T) {
	t.Parallel()
	f := live(t)
	doc := timesync(t, `{"rtcSync":true,"waitForSync":{"maxOffset":"1ms"}}`)
	p, err := plan(t.Context(), f.Machine, doc)
	require.NoError(t, err)
	require.Len(t, p.Changes, 2)
	assert.Equal(t, "activate:chrony.service", p.Changes[0].ID)
	assert.Equal(t, "wait until chrony.service has synchronized the clock, at most 3m0s", p.Changes[1].Summary)
	assert.True(t, p.Changes[1].Interruptible)
	f.WriteFiles(t, map[string]string{"/etc/chrony/conf.d/machineadm.conf": "# Written by machineadm for a Timesync document. Changes are overwritten.\nrtcsync\n"})
	assert.Empty(t, f.Commands.Lines(), "before the activation nothing is asked")

	for status, changes := range map[string]int{synchronized: 0, unsynchronized: 1, strings.Replace(synchronized, "0.000001234", "-0.5", 1): 1} {
		f.Commands.On("chronyc -n -c tracking", machine.Result{Stdout: []byte(status)})
		before := len(f.Commands.Lines())
		p, err = plan(t.Context(), f.Machine, doc)
		require.NoError(t, err)
		assert.Len(t, p.Changes, changes, status)
		assert.Len(t, f.Commands.Lines(), before+1)
	}
}

// TestPoints: a file of points that is not there has a warning, because an earlier document can make it.
func TestPoints(t *testing.T) {
	t.Parallel()
	f := live(t)
	doc := timesync(t, `{"providerConfig":{"directives":["tempcomp /sys/class/hwmon/hwmon0/temp1_input 30 /etc/chrony/points"]}}`)
	p, err := plan(t.Context(), f.Machine, doc)
	require.NoError(t, err)
	require.Len(t, p.Warnings, 1)
	assert.Equal(t, "spec.providerConfig.directives[0]", p.Warnings[0].Field)
	f.WriteFiles(t, map[string]string{"/etc/chrony/points": "20 1.0\n30 2.0\n"})
	p, err = plan(t.Context(), f.Machine, doc)
	require.NoError(t, err)
	assert.Empty(t, p.Warnings)
}

// TestSynchronization: the wait ends when the daemon reports success, and its failure shows what the daemon reports.
func TestSynchronization(t *testing.T) {
	t.Parallel()
	f := live(t)
	f.WriteFiles(t, map[string]string{"/etc/chrony/conf.d/machineadm.conf": "# Written by machineadm for a Timesync document. Changes are overwritten.\n"})
	f.Commands.On("chronyc -n -c sources", machine.Result{Stdout: []byte(sources)})
	asked := 0
	f.Commands.OnFunc("chronyc -n -c tracking", func(context.Context, machine.Command) (machine.Result, error) {
		if asked++; asked < 3 {
			return machine.Result{Stdout: []byte(unsynchronized)}, nil
		}
		return machine.Result{Stdout: []byte(synchronized)}, nil
	})
	p, err := plan(t.Context(), f.Machine, timesync(t, `{"waitForSync":{"timeout":"1m"}}`))
	require.NoError(t, err)
	require.Len(t, p.Changes, 1)
	r := &recorder{}
	require.NoError(t, p.Changes[0].Do(t.Context(), r))
	assert.Equal(t, []string{
		"not synchronized, no source is selected (192.0.2.1: selected, stratum 2, offset 2µs; 192.0.2.2: no answer so far)",
		"the selected source is 192.0.2.1 (192.0.2.1: selected, stratum 2, offset 2µs; 192.0.2.2: no answer so far)",
	}, r.lines)

	f.Commands.On("chronyc -n -c tracking", machine.Result{Stdout: []byte(unsynchronized)})
	p, err = plan(t.Context(), f.Machine, timesync(t, `{"waitForSync":{"timeout":"10ms"}}`))
	require.NoError(t, err)
	err = p.Changes[0].Do(t.Context(), r)
	require.ErrorContains(t, err, "not within 10ms: not synchronized, no source is selected (192.0.2.1: selected")

	ctx, stop := context.WithCancelCause(t.Context())
	stop(sdk.ErrStopped)
	require.ErrorIs(t, p.Changes[0].Do(ctx, r), sdk.ErrStopped)
}

type recorder struct{ lines []string }

func (r *recorder) Report(line string) { r.lines = append(r.lines, line) }

func (*recorder) Warn(string, string) {}

func (*recorder) RequestReboot(sdk.Reboot) {}

// TestCheck: chronyd reads the candidates, the main file first, and its refusal changes nothing.
func TestCheck(t *testing.T) {
	t.Parallel()
	f := live(t)
	var arguments []string
	f.Commands.OnFunc("chronyd -p ...", func(_ context.Context, c machine.Command) (machine.Result, error) {
		arguments = c.Args
		return machine.Result{}, &machine.CommandError{Name: "chronyd", ExitCode: 1, Stderr: "Could not parse makestep directive"}
	})
	p, err := plan(t.Context(), f.Machine, timesync(t, `{"makeStep":{"threshold":"1s","limit":3}}`))
	require.NoError(t, err)
	err = p.Changes[0].Do(t.Context(), &recorder{})
	require.ErrorContains(t, err, "the check of the new configuration of chrony.service failed, nothing was changed")
	require.Len(t, arguments, 3)
	assert.Contains(t, arguments[1], "/etc/chrony/.chrony.conf")
	assert.Contains(t, arguments[2], "/etc/chrony/conf.d/.machineadm.conf")
	_, err = f.Machine.FS.Stat("/etc/chrony/conf.d/machineadm.conf")
	require.Error(t, err)
	assert.Empty(t, f.Services.Calls())
}

func TestStatusRefuses(t *testing.T) {
	t.Parallel()
	for name, output := range map[string]string{
		"nothing": "", "two lines": synchronized + synchronized, "few columns": "1,2,3\n", "no number": strings.Replace(synchronized, "0.000001234", "x", 1),
		"quotes": "\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := live(t)
			f.Commands.On("chronyc -n -c tracking", machine.Result{Stdout: []byte(output)})
			_, err := status(t.Context(), f.Machine, false, true)
			require.ErrorContains(t, err, "chronyc tracking: ")
		})
	}
	f := live(t)
	f.Commands.On("chronyc -n -c tracking", machine.Result{ExitCode: 1, Stdout: []byte("506 Cannot talk to daemon\n")})
	_, err := errors.AsType[*machine.CommandError](healthy(settings.Settings{}, nil)(t.Context(), f.Machine, nil))
	assert.True(t, err)
}

// TestForeignSource: after an activation, a source that no file names ends it; an older chronyc, a configuration that is rolled back, a document
// that keeps the sources of others, and clocks have none.
func TestForeignSource(t *testing.T) {
	t.Parallel()
	const list = "^,*,ntp1.example.com,2,6,377,1,0.1,0.1,0.1\n^,-,NTP2.example.com,2,6,377,1,0.1,0.1,0.1\n#,-,PHC0,2,6,377,1,0.1,0.1,0.1\n^,?,2001:db8:0::1,2,6,0,1,0,0,0\n"
	file := []sdk.FileSpec{{Path: "/etc/chrony/conf.d/machineadm.conf", Content: []byte("server ntp1.example.com\n")}}
	for name, c := range map[string]struct {
		spec, list string
		exit       int
		content    string
		refused    bool
	}{
		"its own":      {`{"servers":[{"address":"ntp1.example.com"},{"address":"ntp2.example.com"},{"address":"2001:db8::1"}]}`, list, 0, "server ntp1.example.com\n", false},
		"another":      {`{"servers":[{"address":"ntp1.example.com"},{"address":"ntp2.example.com"}]}`, list, 0, "server ntp1.example.com\n", true},
		"kept":         {`{"servers":[{"address":"ntp1.example.com"}],"keepDistributionSources":true}`, list, 0, "server ntp1.example.com\n", false},
		"rolled back":  {`{"servers":[{"address":"ntp1.example.com"}]}`, list, 0, "", false},
		"older chrony": {`{"servers":[{"address":"ntp1.example.com"}]}`, "", 1, "server ntp1.example.com\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := live(t)
			f.WriteFiles(t, map[string]string{file[0].Path: c.content})
			f.Commands.On("chronyc -N -c sources", machine.Result{Stdout: []byte(c.list), ExitCode: c.exit})
			want, violations := settings.Resolve(timesync(t, c.spec))
			require.Empty(t, violations)
			err := healthy(want, file)(t.Context(), f.Machine, nil)
			if !c.refused {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "chronyd uses the source 2001:db8:0::1, which the document does not have")
		})
	}
}

func FuzzStatus(f *testing.F) {
	f.Add(synchronized, sources)
	f.Add(unsynchronized, "")
	f.Fuzz(func(t *testing.T, tracking, list string) {
		commands := machinetest.NewRunner(t)
		commands.On("chronyc -n -c tracking", machine.Result{Stdout: []byte(tracking)})
		commands.On("chronyc -n -c sources", machine.Result{Stdout: []byte(list)})
		s, err := status(t.Context(), sdk.Machine{Commands: commands}, true, true)
		if err == nil {
			require.NotEmpty(t, s.String())
		}
	})
}

// TestCrash: wherever the process ends, the next run finishes, with the other daemon off.
func TestCrash(t *testing.T) {
	t.Parallel()
	doc := timesync(t, `{"rtcSync":true,"makeStep":{"threshold":"1s","limit":3},"waitForSync":{}}`)
	synctest.Test(t, func(t *testing.T) {
		machinetest.Crash(t, func() *machinetest.Fixture {
			f := live(t)
			f.Services.Put("ntpsec.service", machine.ServiceState{Active: "active", Sub: "running", InvocationID: "2", Enabled: true})
			f.Commands.On("chronyd -p ...", machine.Result{})
			f.Commands.On("chronyc -n -c sources", machine.Result{Stdout: []byte(sources)})
			return f
		}, func(ctx context.Context, m machine.Machine) (sdk.Plan, error) { return plan(ctx, m, doc) })
	})
}

// BenchmarkConvergedPlan is the plugin's own share of a plan that finds nothing to do: systemd and chronyc answer at once.
func BenchmarkConvergedPlan(b *testing.B) {
	f := live(b)
	f.WriteFiles(b, map[string]string{"/etc/chrony/conf.d/machineadm.conf": "# Written by machineadm for a Timesync document. Changes are overwritten.\n"})
	doc := timesync(b, `{"waitForSync":{}}`)
	for b.Loop() {
		p, err := plan(b.Context(), f.Machine, doc)
		if err != nil || len(p.Changes) > 0 {
			b.Fatal(p.Changes, err)
		}
	}
}

// TestAcceptedConfigurations: what chronyd accepts is no defect of this plugin, and one apply settles it.
func TestAcceptedConfigurations(t *testing.T) {
	t.Parallel()
	const main, site = "/etc/chrony/chrony.conf", "/etc/chrony/conf.d/site.conf"
	for name, files := range map[string]map[string]string{
		"a directory twice":           {main: "confdir /etc/chrony/conf.d /etc/chrony/conf.d\nconfdir /etc/chrony/conf.d\n", site: "server a\n"},
		"a directory and a pattern":   {main: "confdir /etc/chrony/conf.d\ninclude /etc/chrony/conf.d/*.conf\n", site: "server a\n"},
		"a file that includes itself": {main: "include /etc/chrony/*.conf\nserver a\n"},
		"a link to the main file":     {main: "confdir /etc/chrony/conf.d\nserver a\n", site: "-> ../chrony.conf"},
		"two names of one file":       {main: "confdir /etc/chrony/conf.d\n", site: "server a\n", "/etc/chrony/conf.d/other.conf": "-> site.conf"},
		"two directories of one":      {main: "confdir /etc/chrony/conf.d /etc/chrony/link.d\n", site: "server a\n", "/etc/chrony/link.d": "-> conf.d"},
		"two blocks":                  {main: "# BEGIN machineadm\nserver a\n# END machineadm\nrtcsync\n# BEGIN machineadm\nserver a\n# END machineadm\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files["/etc/passwd"], files["/usr/lib/systemd/system/chrony.service"] = "_chrony:x:12:34::/:/bin/false\n", "[Install]\nWantedBy=multi-user.target\n"
			const document = `{"apiVersion":"` + v1alpha1.APIVersion + `","kind":"Timesync","metadata":{"name":"t"},"spec":{"servers":[{"address":"ntp1.example.com"}]}}`
			require.NoError(t, machinetest.Converge(t, files, document, sdk.For(v1alpha1.APIVersion, v1alpha1.KindTimesync, sdk.PhasePreparation, plan)))
		})
	}
}
