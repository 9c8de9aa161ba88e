package outbox

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/state"
)

func at(boot string, uptime time.Duration) state.Clock {
	return state.Clock{BootID: boot, Uptime: uptime}
}

// TestPauses: without jitter they double from 30 s to 10 min, and end after 24 hours.
func TestPauses(t *testing.T) {
	t.Parallel()
	o := state.Outgoing{LastTry: at("a", time.Minute)}
	now, wall := time.Minute, time.Unix(1000, 0)
	var pauses []time.Duration
	tries := 0
	for ; !Expired(o, at("a", now)); tries++ {
		require.Zero(t, Wait(o, at("a", now)))
		o = Failed(o, at("a", now), wall, 0, 0.5)
		require.Equal(t, tries+1, o.Tries)
		require.Equal(t, wall.Add(o.Pause), o.NextTry)
		require.Equal(t, o.Pause, Wait(o, at("a", now)))
		require.Equal(t, time.Nanosecond, Wait(o, at("a", now+o.Pause-1)))
		if len(pauses) < 7 {
			pauses = append(pauses, o.Pause)
		}
		now += o.Pause
	}
	assert.Equal(t, "[30s 1m0s 2m0s 4m0s 8m0s 10m0s 10m0s]", fmt.Sprint(pauses))
	assert.Equal(t, 148, tries, "in 24 hours")
}

func TestJitterAndLeastPause(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		tries  int
		after  time.Duration
		random float64
		want   time.Duration
	}{
		{0, 0, 0, 24 * time.Second},
		{0, 0, 0.75, 33 * time.Second},
		{4, 0, 0, 384 * time.Second},
		{5, 0, 0, 8 * time.Minute},
		{100, 0, 0.5, 10 * time.Minute},
		{0, time.Minute, 0.5, time.Minute},
		{0, time.Second, 0.5, 30 * time.Second},
		{0, time.Hour, 0.5, 10 * time.Minute},
	} {
		o := Failed(state.Outgoing{Tries: tt.tries, LastTry: at("a", 1)}, at("a", 2), time.Time{}, tt.after, tt.random)
		assert.Equal(t, tt.want, o.Pause, "%+v", tt)
	}
}

// TestClocks: the wall clock decides nothing, a boot makes a report due, and only the time that the machine ran counts.
func TestClocks(t *testing.T) {
	t.Parallel()
	waiting := state.Outgoing{LastTry: at("a", 10*time.Hour), Age: 23 * time.Hour, Pause: 10 * time.Minute, FirstTry: time.Unix(0, 0)}
	for name, tt := range map[string]struct {
		now     state.Clock
		age     time.Duration
		wait    time.Duration
		expired bool
	}{
		"at once":                       {at("a", 10*time.Hour), 23 * time.Hour, 10 * time.Minute, false},
		"later":                         {at("a", 10*time.Hour+4*time.Minute), 23*time.Hour + 4*time.Minute, 6 * time.Minute, false},
		"too late":                      {at("a", 11*time.Hour), 24 * time.Hour, 0, true},
		"after a boot":                  {at("b", time.Minute), 23*time.Hour + time.Minute, 0, false},
		"after a boot, longer up":       {at("b", 59*time.Minute), 23*time.Hour + 59*time.Minute, 0, false},
		"after a boot, too late":        {at("b", time.Hour), 24 * time.Hour, 0, true},
		"after a boot without its ID":   {at("a", time.Minute), 23*time.Hour + time.Minute, 0, false},
		"a boot ID that was not to get": {at("", 10*time.Hour), 33 * time.Hour, 0, true},
	} {
		assert.Equal(t, tt.age, Age(waiting, tt.now), name)
		assert.Equal(t, tt.wait, Wait(waiting, tt.now), name)
		assert.Equal(t, tt.expired, Expired(waiting, tt.now), name)
	}
	o := Failed(waiting, at("b", time.Minute), time.Time{}, 0, 0.5)
	assert.Equal(t, 23*time.Hour+time.Minute, o.Age, "a reboot at each try does not make it younger")
	assert.Equal(t, at("b", time.Minute), o.LastTry)
}

func TestClassify(t *testing.T) {
	t.Parallel()
	beside := state.Outgoing{Document: []byte(`{"kind":"RemoteConfig","spec":{"uri":"x"}}`)}
	asked := state.Outgoing{Document: []byte(`{"kind":"RemoteConfig","spec":{"uri":"x","report":{"uri":"y"}}}`)}
	inline := state.Outgoing{Document: []byte(`{"kind":"ReportTarget","spec":{"uri":"x"}}`)}
	coded := func(c pluginv1.Code) error {
		return fmt.Errorf("call: %w", &pluginv1.Error{Code: c, RetryAfter: time.Minute})
	}
	for _, tt := range []struct {
		o     state.Outgoing
		err   error
		want  Answer
		after time.Duration
	}{
		{beside, nil, Delivered, 0},
		{beside, coded(pluginv1.CodeUnsupported), NotWanted, 0},
		{asked, coded(pluginv1.CodeUnsupported), Refused, 0},
		{inline, coded(pluginv1.CodeUnsupported), Refused, 0},
		{beside, coded(pluginv1.CodeInvalidConfig), Refused, 0},
		{beside, coded(pluginv1.CodeRetry), Again, time.Minute},
		{beside, coded(pluginv1.CodePrecondition), Again, time.Minute},
		{beside, coded(pluginv1.CodeInternal), Again, time.Minute},
		{inline, fmt.Errorf("%w: %w", pluginv1.ErrCrashed, coded(pluginv1.CodeUnsupported)), Again, 0},
		{inline, errors.New("no such plugin"), Again, 0},
		{inline, context.DeadlineExceeded, Again, 0},
	} {
		got, after := Classify(tt.o, tt.err)
		assert.Equal(t, tt.want, got, "%s: %v", tt.o.Document, tt.err)
		assert.Equal(t, tt.after, after, "%s: %v", tt.o.Document, tt.err)
	}
}

// keeper is a source that keeps the last report.
type keeper struct {
	pluginv1.Source
	last *pluginv1.ReportRequest
}

func (k keeper) Report(_ context.Context, r pluginv1.ReportRequest) error {
	*k.last = r
	return nil
}

func TestSend(t *testing.T) {
	t.Parallel()
	var got pluginv1.ReportRequest
	o := state.Outgoing{Document: []byte(`{"kind":"ReportTarget"}`), Report: []byte("{}"), Sequence: 7}
	machine := target.Target{OS: "linux"}
	require.NoError(t, Send(t.Context(), keeper{last: &got}, []string{"other", pluginv1.CapabilityReport}, o, machine))
	assert.Equal(t, pluginv1.ReportRequest{Document: o.Document, Report: o.Report, Sequence: 7, Target: machine}, got)
	got = pluginv1.ReportRequest{}
	err := Send(t.Context(), keeper{last: &got}, []string{"other"}, o, machine)
	assert.Equal(t, pluginv1.CodeUnsupported, pluginv1.AsError(err).Code)
	assert.Zero(t, got, "not called")
}
