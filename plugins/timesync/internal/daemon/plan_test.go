package daemon_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/timesync/internal/daemon"
	"github.com/machineadm/machineadm/plugins/timesync/internal/measure"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

type recorder struct{ lines, warnings []string }

func (r *recorder) Report(line string) { r.lines = append(r.lines, line) }

func (r *recorder) Warn(field, message string) {
	r.warnings = append(r.warnings, field+": "+message)
}

func (*recorder) RequestReboot(sdk.Reboot) {}

// answering returns a daemon whose servers answer with these offsets; a negative one means not at all.
func answering(t *testing.T, f *machinetest.Fixture, offsets ...time.Duration) (settings.Settings, daemon.Daemon) {
	t.Helper()
	f.Services.Put("chrony.service", machine.ServiceState{Active: "active", Sub: "running", InvocationID: "1", Enabled: true})
	states, err := daemon.Query(t.Context(), f.Machine)
	require.NoError(t, err)
	want := settings.Settings{DisableOthers: true, Wait: &settings.Wait{Timeout: time.Minute, MaxOffset: 100 * time.Millisecond}}
	for i := range offsets {
		name := string(rune('a' + i))
		want.Sources = append(want.Sources, settings.Source{Address: name, Field: "spec." + name})
	}
	return want, daemon.Daemon{
		Unit: "chrony.service", States: states, Files: []sdk.FileSpec{{Path: "/etc/x", Content: []byte("x"), Mode: 0o644}},
		Healthy: func(context.Context, sdk.Machine, sdk.Progress) error { return nil },
		Status: func(context.Context, sdk.Machine, bool) (daemon.Status, error) {
			return daemon.Status{Synchronized: true, Source: "a"}, nil
		},
		Ask: func(_ context.Context, sources []settings.Source) []measure.Answer {
			var answers []measure.Answer
			for i, s := range sources {
				answer := measure.Answer{Source: s, Offset: offsets[i], Stratum: 2}
				if offsets[i] < 0 {
					answer.Err = errors.New("no answer")
				}
				answers = append(answers, answer)
			}
			return answers
		},
	}
}

// TestNoServerAnswers: nothing is changed, and the host tries again.
func TestNoServerAnswers(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	want, d := answering(t, f, -1, -1)
	p, err := daemon.Plan(t.Context(), f.Machine, want, d)
	require.NoError(t, err)
	require.Len(t, p.Changes, 2)
	known := pluginv1.AsError(p.Changes[0].Do(t.Context(), &recorder{}))
	assert.Equal(t, pluginv1.CodeRetry, known.Code)
	assert.Contains(t, known.Message, "none of the servers can be used, so the configuration stays unchanged: a: no answer; b: no answer")
	_, err = f.Machine.FS.Stat("/etc/x")
	require.Error(t, err)
	assert.Empty(t, f.Services.Calls())

	want.Sources[0].NTS = true
	p, err = daemon.Plan(t.Context(), f.Machine, want, d)
	require.NoError(t, err)
	require.NoError(t, p.Changes[0].Do(t.Context(), &recorder{}), "a server with NTS may answer only with it")
}

// TestSomeServersAnswer: the others are warnings, and so are servers that disagree.
func TestSomeServersAnswer(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	want, d := answering(t, f, 0, -1, time.Hour)
	p, err := daemon.Plan(t.Context(), f.Machine, want, d)
	require.NoError(t, err)
	r := &recorder{}
	require.NoError(t, p.Changes[0].Do(t.Context(), r))
	require.Len(t, r.warnings, 2)
	assert.Equal(t, "spec.b: b: no answer", r.warnings[0])
	assert.Contains(t, r.warnings[1], ": two servers disagree by 1h0m0s: a: stratum 2, offset 0s")
	assert.Contains(t, r.lines, "a: stratum 2, offset 0s, root distance 0s")
}

// TestDistance: a server beyond the root distance that the daemon accepts cannot be used.
func TestDistance(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	want, d := answering(t, f, 0)
	answer := d.Ask
	d.Ask = func(ctx context.Context, sources []settings.Source) []measure.Answer {
		all := answer(ctx, sources)
		all[0].Distance = 10 * time.Second
		return all
	}
	for limit, refused := range map[time.Duration]bool{0: false, 30 * time.Second: false, 5 * time.Second: true} {
		d.MaxDistance = limit
		p, err := daemon.Plan(t.Context(), f.Machine, want, d)
		require.NoError(t, err)
		r := &recorder{}
		err = p.Changes[0].Do(t.Context(), r)
		if !refused {
			require.NoError(t, err)
			require.Empty(t, r.warnings)
			require.NoError(t, f.Machine.FS.Remove("/etc/x"))
			continue
		}
		known := pluginv1.AsError(err)
		assert.Equal(t, pluginv1.CodeRetry, known.Code)
		assert.Contains(t, known.Message, "a: its root distance is 10s, and chrony.service ignores servers beyond 5s")
	}
}

// TestServersDoNotConfirm: the daemon's own report is not enough.
func TestServersDoNotConfirm(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	want, d := answering(t, f, time.Hour)
	want.Wait.Timeout = 10 * time.Millisecond
	p, err := daemon.Plan(t.Context(), f.Machine, want, d)
	require.NoError(t, err)
	known := pluginv1.AsError(p.Changes[1].Do(t.Context(), &recorder{}))
	assert.Equal(t, pluginv1.CodePrecondition, known.Code)
	assert.Contains(t, known.Message, "the servers do not confirm an offset of at most 100ms: a: stratum 2, offset 1h0m0s")
	assert.Contains(t, known.Hint, "journalctl -u chrony.service")
}

// TestAnswerIsLost: a server that answered before the activation still counts, so that a wrong one does not confirm itself.
func TestAnswerIsLost(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	want, d := answering(t, f, time.Hour, 0) // the clock agrees with the second one
	want.Wait.Timeout = 10 * time.Millisecond
	answer := d.Ask
	p, err := daemon.Plan(t.Context(), f.Machine, want, daemon.Daemon{
		Unit: d.Unit, States: d.States, Files: d.Files, Healthy: d.Healthy, Status: d.Status,
		Ask: func(ctx context.Context, sources []settings.Source) []measure.Answer {
			all := answer(ctx, sources)
			if _, err := f.Machine.FS.Stat("/etc/x"); err == nil {
				all[0] = measure.Answer{Source: sources[0], Err: errors.New("no answer")}
			}
			return all
		},
	})
	require.NoError(t, err)
	require.NoError(t, p.Changes[0].Do(t.Context(), &recorder{}))
	known := pluginv1.AsError(p.Changes[1].Do(t.Context(), &recorder{}))
	assert.Equal(t, pluginv1.CodePrecondition, known.Code)
	assert.Contains(t, known.Message, "the servers do not confirm an offset of at most 100ms: a: no answer; b: stratum 2, offset 0s")
}

// TestOthers: other time daemons are stopped and kept from starting, unless the document leaves them alone.
func TestOthers(t *testing.T) {
	t.Parallel()
	for _, disable := range []bool{true, false} {
		f := machinetest.New(t)
		f.Services.Put("ntpsec.service", machine.ServiceState{Active: "active", Sub: "running", InvocationID: "2", Enabled: true})
		want, d := answering(t, f)
		want.DisableOthers, want.Wait = disable, nil
		p, err := daemon.Plan(t.Context(), f.Machine, want, d)
		require.NoError(t, err)
		require.Len(t, p.Changes, 1)
		require.NoError(t, p.Changes[0].Do(t.Context(), &recorder{}))
		_, err = f.Machine.FS.Stat("/etc/systemd/system/ntpsec.service.d/zz-machineadm-off.conf")
		assert.Equal(t, disable, err == nil)
		assert.Equal(t, disable, f.Services.Calls()[0] == "stop ntpsec.service")
	}
}

func TestFit(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	fit := func() sdk.Fitness {
		fitness, _, err := daemon.Fit(t.Context(), f.Machine, "chrony.service", "chronyd.service")
		require.NoError(t, err)
		return fitness
	}
	assert.Equal(t, sdk.FitnessAbsent, fit())
	f.Services.Put("chronyd.service", machine.ServiceState{Active: "inactive"})
	assert.Equal(t, sdk.FitnessInstalled, fit())
	f.Services.Put("chronyd.service", machine.ServiceState{Active: "active"})
	assert.Equal(t, sdk.FitnessActive, fit())
}

// TestReplacedPackage: without its daemon a document is refused, and the hint names the provider of an installed one, if
// possible of one that runs.
func TestReplacedPackage(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	for _, c := range []struct{ unit, active, hint string }{
		{"ntpd-rs.service", "active", ""},
		{"systemd-timesyncd.service", "inactive", ", or set spec.provider: systemd for systemd-timesyncd.service, which is installed"},
		{"ntpsec.service", "active", ", or set spec.provider: ntpd for ntpsec.service, which is installed"},
	} {
		f.Services.Put(c.unit, machine.ServiceState{ID: c.unit, Active: c.active})
		_, _, err := daemon.Find(t.Context(), f.Machine, v1alpha1.Timesync{}, "chrony", "chrony.service", "chronyd.service")
		known := pluginv1.AsError(err)
		assert.Equal(t, pluginv1.CodePrecondition, known.Code)
		assert.Equal(t, "chrony.service is not installed", known.Message)
		assert.Equal(t, "install the package chrony"+c.hint+"; then run again", known.Hint)
	}
}

// TestClaims: two documents that differ conflict at the field, whatever is installed.
func TestClaims(t *testing.T) {
	t.Parallel()
	claims := func(spec v1alpha1.TimesyncSpec) map[string]machine.Claim {
		f := machinetest.New(t)
		_, _, err := daemon.Find(t.Context(), f.Machine, v1alpha1.Timesync{Spec: spec}, "chrony", "chrony.service")
		require.ErrorContains(t, err, "chrony.service is not installed")
		byID := map[string]machine.Claim{}
		for _, c := range f.Claims() {
			byID[c.ID] = c
		}
		return byID
	}
	one := claims(v1alpha1.TimesyncSpec{Provider: "chronyd", Fallback: []string{"a"}})
	assert.Equal(t, machine.Claim{ID: "clock:system#fallback", Field: "spec.fallback", Value: []string{"fallback:\n  - a\n"}}, one["clock:system#fallback"])
	assert.Empty(t, one["clock:system#servers"].Value)
	assert.NotContains(t, one, "clock:system#provider")
	assert.Equal(t, one, claims(v1alpha1.TimesyncSpec{Fallback: []string{"a"}}))
}

// TestInterrupted: an activation that was interrupted after the swap is finished, also when no server answers any more.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		machinetest.Crash(t, func() *machinetest.Fixture {
			f := machinetest.New(t)
			answering(t, f, 0)
			return f
		}, func(ctx context.Context, m machine.Machine) (sdk.Plan, error) {
			want, d := answering(t, machinetest.New(t), 0)
			want.Wait, d.States = nil, nil
			answer := d.Ask
			d.Ask = func(ctx context.Context, sources []settings.Source) []measure.Answer {
				if _, err := m.FS.Stat("/etc/x"); err == nil {
					return []measure.Answer{{Source: sources[0], Err: errors.New("no answer")}}
				}
				return answer(ctx, sources)
			}
			return daemon.Plan(ctx, m, want, d)
		})
	})
}
