package run

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// fakeResume writes down what it is asked, and answers as the test says.
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

// TestResume: what is kept over a reboot, when, and what is left of it at the end.
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
		"kept, once the reboot is counted": {
			setup: asking(pluginv1.RebootBeforeNext), options: Options{Reboot: true, Stream: things(named, named)},
			exit: report.ExitReboot, left: report.ResumeAtBoot, log: strings.Replace(begun, "remove", "plan b by x\nremove", 1) + "\ncount reboot 1\nkeep",
			errors: "Reboot: the machine must reboot before the next document",
		},
		"kept for a reboot after the run, too": {
			setup: asking(pluginv1.RebootAfterRun), options: Options{Reboot: true},
			exit: report.ExitReboot, left: report.ResumeAtBoot, log: begun + "\ncount reboot 1\nkeep",
			errors: "Reboot: every document is done; the machine must reboot",
		},
		"not kept when this run does not reboot": {
			setup: asking(pluginv1.RebootAfterRun), exit: report.ExitReboot, log: begun + "\nend RebootRequired",
			errors: "Reboot: every document is done; the machine must reboot",
		},
		"what cannot be kept is no reboot": {
			setup: asking(pluginv1.RebootAfterRun), options: Options{Reboot: true}, resume: fakeResume{keepErr: errors.New("disk full")},
			exit: report.ExitState, log: begun + "\ncount reboot 1\nkeep\nend Failed", errors: "State: disk full",
		},
		"one reboot too many ends the run, and what was kept stays": {
			setup:   func(w *world) { asking(pluginv1.RebootAfterRun)(w); w.reboots = MaxReboots },
			options: Options{Reboot: true}, resume: fakeResume{end: report.ResumeByHand},
			exit: report.ExitDeadline, left: report.ResumeByHand, log: begun + "\ncount reboot 4\nend Failed",
			errors: "TooManyReboots: the stream asks for reboot 4; at most 3 are made",
		},
		"success leaves nothing, and the sentinel comes after it": {
			exit: report.ExitOK, log: begun + "\nend Succeeded\nwrite sentinel",
		},
		"what cannot be forgotten is no success": {
			resume: fakeResume{endErr: errors.New("read-only")}, exit: report.ExitState, log: begun + "\nend Succeeded", errors: "State: read-only",
		},
		"a failure says what was kept": {
			setup: failing(pluginv1.CodePrecondition), resume: fakeResume{end: report.ResumeByHand},
			exit: report.ExitPrecondition, left: report.ResumeByHand, log: begun + "\nend Failed", errors: "Precondition: no",
		},
		"a plan keeps nothing and ends nothing": {
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
			if tt.options.Stream == nil {
				tt.options.Stream = things(named)
			}
			if tt.options.Mode != ModePlan {
				tt.options.Mode, w.resume = ModeApply, &tt.resume
			}
			got := w.execute(tt.options)
			if got.ExitCode != tt.exit || got.Resume != tt.left || errorsOf(got) != tt.errors {
				t.Errorf("exit %d, goes on %q, errors %q; want %d, %q, %q", got.ExitCode, got.Resume, errorsOf(got), tt.exit, tt.left, tt.errors)
			}
			if w.lines() != tt.log {
				t.Errorf("did\n%s\nwant\n%s", w.lines(), tt.log)
			}
			if w.reboots > 0 && got.ExitCode == report.ExitOK {
				t.Errorf("%d reboots stay counted", w.reboots)
			}
		})
	}
}
