package resume

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/journal"
)

// fakeStarter records whether a boot starts the command.
type fakeStarter struct {
	on   bool
	fail error
}

func (f *fakeStarter) Install(context.Context) error {
	f.on = f.on || f.fail == nil
	return f.fail
}

func (f *fakeStarter) Remove(context.Context) error {
	f.on = false
	return nil
}

func state(t *testing.T) *journal.Journal {
	t.Helper()
	j, err := journal.Open(filepath.Join(t.TempDir(), "state"), "machine-1")
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func aRun(generation, boot string) journal.Pending {
	return journal.Pending{
		Generation: generation, BootID: boot, File: "/run/node.yaml", Phase: allPhases, Timeout: time.Minute, Stream: []byte("kind: X\n"),
	}
}

func waits(t *testing.T, j *journal.Journal) bool {
	t.Helper()
	p, err := j.Pending()
	if err != nil {
		t.Fatal(err)
	}
	return p != nil
}

// TestAcrossTheReboot follows a stream from the reboot request to the end of its run.
func TestAcrossTheReboot(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[report.Outcome]struct {
		left     report.Resume
		kept, on bool
	}{
		report.RunSucceeded:   {},
		report.RunFailed:      {left: report.ResumeByHand, kept: true},
		report.RunInvalid:     {left: report.ResumeByHand, kept: true},
		report.RunInterrupted: {left: report.ResumeAtBoot, kept: true, on: true},
	} {
		t.Run(string(outcome), func(t *testing.T) {
			t.Parallel()
			j, s := state(t), &fakeStarter{}
			first := New(j, s, aRun("stream", "boot-1"))
			if err := first.Keep(t.Context()); err != nil || !s.on || !waits(t, j) {
				t.Fatalf("kept: %t, starts: %t (%v)", waits(t, j), s.on, err)
			}
			second := New(j, s, aRun("stream", "boot-2"))
			left, err := second.End(t.Context(), outcome, outcome == report.RunSucceeded)
			if err != nil || left != want.left || waits(t, j) != want.kept || s.on != want.on {
				t.Errorf("goes on %q, kept %t, starts %t; want %+v (%v)", left, waits(t, j), s.on, want, err)
			}
		})
	}
}

// TestManualResume: a run that failed does not start at boot any more, also when a second try is interrupted.
func TestManualResume(t *testing.T) {
	t.Parallel()
	j, s := state(t), &fakeStarter{}
	r := New(j, s, aRun("stream", "boot-2"))
	if err := r.Keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, outcome := range []report.Outcome{report.RunFailed, report.RunInterrupted} {
		if left, err := r.End(t.Context(), outcome, false); err != nil || left != report.ResumeByHand || s.on {
			t.Errorf("%s: goes on %q, starts %t (%v)", outcome, left, s.on, err)
		}
	}
}

// TestAnotherStream: a run of another stream replaces one that waits once it has got to the end of its own.
func TestAnotherStream(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		outcome        report.Outcome
		complete, kept bool
	}{
		"refused":                           {report.RunInvalid, false, true},
		"failed":                            {report.RunFailed, false, true},
		"interrupted":                       {report.RunInterrupted, false, true},
		"before the next document a reboot": {report.RunRebootRequired, false, true},
		"after all documents a reboot":      {report.RunRebootRequired, true, false},
		"succeeded":                         {report.RunSucceeded, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, s := state(t), &fakeStarter{}
			require.NoError(t, New(j, s, aRun("old", "boot-1")).Keep(t.Context()))
			left, err := New(j, s, aRun("new", "boot-1")).End(t.Context(), tt.outcome, tt.complete)
			require.NoError(t, err)
			assert.Empty(t, left)
			assert.Equal(t, tt.kept, waits(t, j))
			assert.Equal(t, tt.kept, s.on)
		})
	}
}

// TestOnePhase: a run of a part does not end the whole that waits.
func TestOnePhase(t *testing.T) {
	t.Parallel()
	j, s := state(t), &fakeStarter{}
	whole := New(j, s, aRun("stream", "boot-1"))
	if err := whole.Keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	part := aRun("stream", "boot-2")
	part.Phase = "preparation"
	if left, err := New(j, s, part).End(t.Context(), report.RunSucceeded, true); err != nil || left != report.ResumeAtBoot || !waits(t, j) {
		t.Errorf("goes on %q, kept %t (%v)", left, waits(t, j), err)
	}
	if left, err := whole.End(t.Context(), report.RunSucceeded, true); err != nil || left != "" || waits(t, j) || s.on {
		t.Errorf("goes on %q, kept %t, starts %t (%v)", left, waits(t, j), s.on, err)
	}
}

func TestKeepFails(t *testing.T) {
	t.Parallel()
	j, s := state(t), &fakeStarter{fail: errors.New("read-only file system")}
	if err := New(j, s, aRun("stream", "boot-1")).Keep(t.Context()); !errors.Is(err, s.fail) {
		t.Errorf("%v, want %v", err, s.fail)
	}
	if waits(t, j) {
		t.Error("a run that nothing starts is kept")
	}
}
