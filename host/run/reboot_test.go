package run

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/launch"
)

func TestReboots(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		asks     pluginv1.Reboot
		options  Options
		exit     int
		outcomes string
		counted  int
	}{
		"before the next document, if there is none": {asks: pluginv1.RebootBeforeNext, options: Options{Reboot: true}, exit: report.ExitReboot, outcomes: "Changed", counted: 2},
		"not counted without Reboot":                 {asks: pluginv1.RebootAfterRun, exit: report.ExitReboot, outcomes: "Changed", counted: 1},
		"an image has nothing to reboot":             {asks: pluginv1.RebootBeforeNext, options: Options{Root: "/image"}, outcomes: "Changed", counted: 1},
		"success without --reboot ends the count":    {asks: pluginv1.RebootNone, outcomes: "Changed"},
		"success with --reboot ends the count, too":  {asks: pluginv1.RebootNone, options: Options{Reboot: true}, outcomes: "Changed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.reboots = 1
			w.add("x").apply = reboots(tt.asks)
			tt.options.Mode, tt.options.Text = ModeApply, things(named)
			got := w.execute(tt.options)
			if got.ExitCode != tt.exit || outcomes(got) != tt.outcomes || w.reboots != tt.counted {
				t.Errorf("exit %d [%s], %d reboots; want %d [%s], %d; errors:\n%s", got.ExitCode, outcomes(got), w.reboots,
					tt.exit, tt.outcomes, tt.counted, errorsOf(got))
			}
		})
	}
}

// fakeResume logs each call and returns the values of the test.
type fakeResume struct {
	world           *world
	keepErr, endErr error
	end             report.Resume
}

func (f *fakeResume) Keep(context.Context) error {
	f.world.note("keep")
	return f.keepErr
}

func (f *fakeResume) End(_ context.Context, o report.Outcome, _ bool) (report.Resume, error) {
	f.world.note("end %s", o)
	return f.end, f.endErr
}

// TestResume: when a run is saved for the next boot, and what remains of it at the end.
func TestResume(t *testing.T) {
	t.Parallel()
	const begun = "plan a by x\nremove sentinel\napply a by x"
	failing := func(code pluginv1.Code) func(*world) {
		return func(w *world) {
			w.plugins["x"].apply = func(context.Context, string, func(pluginv1.Event) error) (pluginv1.Finished, error) {
				return pluginv1.Finished{Error: &pluginv1.Error{Code: code, Message: "no"}}, nil
			}
		}
	}
	asking := func(asks pluginv1.Reboot) func(*world) {
		return func(w *world) { w.plugins["x"].apply = reboots(asks) }
	}
	tests := map[string]struct {
		setup   func(*world)
		resume  fakeResume
		options Options
		exit    int
		left    report.Resume
		log     string
		errors  string
	}{
		"saved after the reboot is counted": {
			setup: asking(pluginv1.RebootBeforeNext), options: Options{Reboot: true, Text: things(named, named)},
			exit: report.ExitReboot, left: report.ResumeAtBoot, log: strings.Replace(begun, "remove", "plan b by x\nremove", 1) + "\ncount reboot 1\nkeep",
			errors: "Reboot: the machine must reboot before the next document",
		},
		"saved for a reboot after the run": {
			setup: asking(pluginv1.RebootAfterRun), options: Options{Reboot: true},
			exit: report.ExitReboot, left: report.ResumeAtBoot, log: begun + "\ncount reboot 1\nkeep",
			errors: "Reboot: every document is done; the machine must reboot",
		},
		"not saved without Reboot": {
			setup: asking(pluginv1.RebootAfterRun), exit: report.ExitReboot, log: begun + "\nend RebootRequired",
			errors: "Reboot: every document is done; the machine must reboot",
		},
		"no reboot if the run cannot be saved": {
			setup: asking(pluginv1.RebootAfterRun), options: Options{Reboot: true}, resume: fakeResume{keepErr: errors.New("disk full")},
			exit: report.ExitState, log: begun + "\ncount reboot 1\nkeep\nend Failed", errors: "State: disk full",
		},
		"one reboot too many ends the run, and the saved run remains": {
			setup:   func(w *world) { asking(pluginv1.RebootAfterRun)(w); w.reboots = MaxReboots },
			options: Options{Reboot: true}, resume: fakeResume{end: report.ResumeByHand},
			exit: report.ExitDeadline, left: report.ResumeByHand, log: begun + "\ncount reboot 4\nend Failed",
			errors: "TooManyReboots: the stream asks for reboot 4; at most 3 are made",
		},
		"success removes the saved run before it writes the sentinel": {
			exit: report.ExitOK, log: begun + "\nend Succeeded\nwrite sentinel",
		},
		"no success if the saved run cannot be removed": {
			resume: fakeResume{endErr: errors.New("read-only")}, exit: report.ExitState, log: begun + "\nend Succeeded", errors: "State: read-only",
		},
		"a failure reports how to resume": {
			setup: failing(pluginv1.CodePrecondition), resume: fakeResume{end: report.ResumeByHand},
			exit: report.ExitPrecondition, left: report.ResumeByHand, log: begun + "\nend Failed", errors: "Precondition: no",
		},
		"a plan changes nothing": {
			options: Options{Mode: ModePlan}, exit: report.ExitDiffers, log: "plan a by x",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.add("x")
			if tt.setup != nil {
				tt.setup(w)
			}
			if tt.options.Text == nil {
				tt.options.Text = things(named)
			}
			if tt.options.Mode != ModePlan {
				tt.options.Mode, w.resume = ModeApply, &tt.resume
			}
			got := w.execute(tt.options)
			if got.ExitCode != tt.exit || got.Resume != tt.left || errorsOf(got) != tt.errors {
				t.Errorf("exit %d, resume %q, errors %q; want %d, %q, %q", got.ExitCode, got.Resume, errorsOf(got), tt.exit, tt.left, tt.errors)
			}
			if w.lines() != tt.log {
				t.Errorf("log\n%s\nwant\n%s", w.lines(), tt.log)
			}
			if w.reboots > 0 && got.ExitCode == report.ExitOK {
				t.Errorf("%d reboots remain counted", w.reboots)
			}
		})
	}
}

// TestInitHookFails: the output of a failed init hook is in details.json alone.
func TestInitHookFails(t *testing.T) {
	t.Parallel()
	failed := &launch.HookError{Call: "hook verb", Cause: errors.New("exit status 1"), Output: "c4n4ry"}
	for name, tt := range map[string]struct {
		asks   pluginv1.Reboot
		resume fakeResume
	}{
		"before the reboot": {pluginv1.RebootAfterRun, fakeResume{keepErr: failed}},
		"after success":     {pluginv1.RebootNone, fakeResume{endErr: failed}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.add("x").apply = reboots(tt.asks)
			w.resume = &tt.resume
			got := w.execute(Options{Mode: ModeApply, Text: things(named), Reboot: true})
			assert.Equal(t, report.ExitState, got.ExitCode)
			require.Len(t, got.Errors, 1)
			assert.Equal(t, "hook verb: exit status 1", got.Errors[0].Message)
			assert.Equal(t, failed.Hint(), got.Errors[0].Hint)
			assert.Equal(t, map[string]string{got.Errors[0].Details: "c4n4ry"}, w.details)
		})
	}
}
