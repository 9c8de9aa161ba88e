package run

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/state"
)

// machineWithReboots is a world in which each document needs one change, once. Document a asks for a reboot.
type machineWithReboots struct {
	*world
	made  map[string]bool
	fail  map[string]bool
	crash bool // the Apply of a crashes after its change, before it sends Changed
}

func newMachineWithReboots(t *testing.T, when pluginv1.Reboot) *machineWithReboots {
	t.Helper()
	m := &machineWithReboots{world: newWorld(t), made: map[string]bool{}, fail: map[string]bool{}}
	p := m.add("x")
	of := func(name string) pluginv1.Change {
		c := pluginv1.Change{ID: name, Summary: "make " + name}
		if name == "a" {
			c.Reboot = when
		}
		return c
	}
	p.plan = func(name string, _ int) (pluginv1.Plan, error) {
		if m.made[name] {
			return pluginv1.Plan{}, nil
		}
		return pluginv1.Plan{Changes: []pluginv1.Change{of(name)}}, nil
	}
	p.apply = func(_ context.Context, name string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
		switch {
		case m.made[name]:
			return pluginv1.Finished{}, nil
		case m.fail[name]:
			return pluginv1.Finished{Error: pluginv1.AsError(precondition("no"))}, nil
		case m.crash && name == "a":
			m.made[name] = true
			return pluginv1.Finished{}, pluginv1.ErrCrashed
		}
		m.made[name] = true
		return pluginv1.Finished{}, change(send, of(name))
	}
	return m
}

func (m *machineWithReboots) reboot() { m.requests = nil } // what the state store does when the boot ID has changed

// others returns a stream whose documents have other names than in things.
func others(specs ...string) []byte {
	return []byte(strings.ReplaceAll(string(things(specs...)), "metadata: {name: ", "metadata: {name: o"))
}

// TestRequestedRebootIsNeverLost: between the change that asks for a reboot and the reboot, every run of the boot ends with
// it or reports that it is due, and no run of the next boot does.
func TestRequestedRebootIsNeverLost(t *testing.T) {
	t.Parallel()
	happens := map[string]func(m *machineWithReboots) report.Report{
		"nothing": func(m *machineWithReboots) report.Report {
			return m.execute(Options{Mode: ModeApply, Text: things(named, named)})
		},
		"a later document fails": func(m *machineWithReboots) report.Report {
			m.fail["b"] = true
			defer delete(m.fail, "b")
			return m.execute(Options{Mode: ModeApply, Text: things(named, named)})
		},
		"the plugin dies after the change": func(m *machineWithReboots) report.Report {
			m.crash = true
			return m.execute(Options{Mode: ModeApply, Text: things(named, named)})
		},
		"an interruption": func(m *machineWithReboots) report.Report {
			interrupt := make(chan struct{})
			inner := m.plugins["x"].apply
			m.plugins["x"].apply = func(ctx context.Context, name string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
				close(interrupt)
				m.plugins["x"].apply = inner
				return inner(ctx, name, send)
			}
			return m.execute(Options{Mode: ModeApply, Text: things(named, named), Interrupt: interrupt})
		},
	}
	for _, when := range []pluginv1.Reboot{pluginv1.RebootAfterRun, pluginv1.RebootBeforeNext} {
		for name, happen := range happens {
			for _, reboots := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s, --reboot %v", when, name, reboots), func(t *testing.T) {
					t.Parallel()
					m := newMachineWithReboots(t, when)
					got := happen(m)
					require.NotEqual(t, report.ExitOK, got.ExitCode)
					require.Len(t, m.requests, 1)

					other := m.execute(Options{Mode: ModeApply, Text: others(named), Reboot: reboots})
					assert.Equal(t, report.ExitReboot, other.ExitCode, "another stream: %s", errorsOf(other))
					assert.False(t, m.sentinel)
					assert.Equal(t, when == pluginv1.RebootAfterRun, m.made["oa"], "another stream is applied unless the reboot comes first")

					again := m.execute(Options{Mode: ModeApply, Text: things(named, named), Reboot: reboots})
					assert.Equal(t, report.ExitReboot, again.ExitCode, "the same stream: %s", errorsOf(again))
					assert.Len(t, again.Reboots, 1)
					assert.Equal(t, when == pluginv1.RebootAfterRun || name == "nothing" && m.made["b"], m.made["b"])
					plan := m.execute(Options{Mode: ModePlan, Text: things(named, named)})
					assert.Equal(t, report.ExitDiffers, plan.ExitCode, "a plan")

					m.reboot()
					last := m.execute(Options{Mode: ModeApply, Text: things(named, named)})
					assert.Equal(t, report.ExitOK, last.ExitCode, "after the reboot: %s", errorsOf(last))
					assert.True(t, m.sentinel)
				})
			}
		}
	}
}

func TestPlannedRebootOfAnUnstartedChangeIsDropped(t *testing.T) {
	t.Parallel()
	m := newMachineWithReboots(t, pluginv1.RebootAfterRun)
	m.fail["a"] = true
	got := m.execute(Options{Mode: ModeApply, Text: things(named)})
	require.Equal(t, report.ExitPrecondition, got.ExitCode)
	assert.Empty(t, m.requests)
	assert.Empty(t, got.Reboots)
}

// TestPlannedRebootAfterAChange: the run that planned the reboot ended after the change. In the next run the document plans
// nothing, and is applied because it follows another change.
func TestPlannedRebootAfterAChange(t *testing.T) {
	t.Parallel()
	m := newMachineWithReboots(t, pluginv1.RebootAfterRun)
	m.requests = []state.Request{{Document: "Thing/a", When: pluginv1.RebootAfterRun}}
	m.made["a"] = true
	first := "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: first}\nspec: {provider: x}\n"
	got := m.execute(Options{Mode: ModeApply, Text: append([]byte(first), things(named)...)})
	assert.Equal(t, report.ExitReboot, got.ExitCode)
	assert.Equal(t, []state.Request{{Document: "Thing/a", When: pluginv1.RebootAfterRun, Asked: true}}, m.requests)
}

func TestUnsavedRequestStopsTheDocument(t *testing.T) {
	t.Parallel()
	m := newMachineWithReboots(t, pluginv1.RebootAfterRun)
	m.keepErr = fmt.Errorf("disk full")
	got := m.execute(Options{Mode: ModeApply, Text: things(named)})
	assert.Equal(t, report.ExitState, got.ExitCode)
	assert.False(t, m.made["a"], "nothing is applied before the request is saved")
}
