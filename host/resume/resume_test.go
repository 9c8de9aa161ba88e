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
	"github.com/machineadm/machineadm/host/state"
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

func opened(t *testing.T) *state.Store {
	t.Helper()
	store, err := state.Open(filepath.Join(t.TempDir(), "state"), "machine-1")
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func aRun(streamDigest, boot string) state.Pending {
	return state.Pending{
		StreamDigest: streamDigest, BootID: boot, File: "/run/node.yaml", Phase: allPhases, Timeout: time.Minute, Stream: []byte("kind: X\n"),
	}
}

func waits(t *testing.T, store *state.Store) bool {
	t.Helper()
	p, err := store.Pending()
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
			store, starter := opened(t), &fakeStarter{}
			first := New(store, starter, aRun("stream", "boot-1"))
			if err := first.Keep(t.Context()); err != nil || !starter.on || !waits(t, store) {
				t.Fatalf("kept: %t, starts: %t (%v)", waits(t, store), starter.on, err)
			}
			second := New(store, starter, aRun("stream", "boot-2"))
			left, err := second.End(t.Context(), outcome, outcome == report.RunSucceeded)
			if err != nil || left != want.left || waits(t, store) != want.kept || starter.on != want.on {
				t.Errorf("resume %q, kept %t, starts %t; want %+v (%v)", left, waits(t, store), starter.on, want, err)
			}
		})
	}
}

// TestManualResume: a run that failed does not start at boot any more, also when a second try is interrupted.
func TestManualResume(t *testing.T) {
	t.Parallel()
	store, starter := opened(t), &fakeStarter{}
	r := New(store, starter, aRun("stream", "boot-2"))
	if err := r.Keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, outcome := range []report.Outcome{report.RunFailed, report.RunInterrupted} {
		if left, err := r.End(t.Context(), outcome, false); err != nil || left != report.ResumeByHand || starter.on {
			t.Errorf("%s: resume %q, starts %t (%v)", outcome, left, starter.on, err)
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
			store, starter := opened(t), &fakeStarter{}
			require.NoError(t, New(store, starter, aRun("old", "boot-1")).Keep(t.Context()))
			left, err := New(store, starter, aRun("new", "boot-1")).End(t.Context(), tt.outcome, tt.complete)
			require.NoError(t, err)
			assert.Empty(t, left)
			assert.Equal(t, tt.kept, waits(t, store))
			assert.Equal(t, tt.kept, starter.on)
		})
	}
}

// TestOnePhase: a run of a part does not end the whole that waits.
func TestOnePhase(t *testing.T) {
	t.Parallel()
	store, starter := opened(t), &fakeStarter{}
	whole := New(store, starter, aRun("stream", "boot-1"))
	if err := whole.Keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	part := aRun("stream", "boot-2")
	part.Phase = "preparation"
	if left, err := New(store, starter, part).End(t.Context(), report.RunSucceeded, true); err != nil || left != report.ResumeAtBoot || !waits(t, store) {
		t.Errorf("resume %q, kept %t (%v)", left, waits(t, store), err)
	}
	if left, err := whole.End(t.Context(), report.RunSucceeded, true); err != nil || left != "" || waits(t, store) || starter.on {
		t.Errorf("resume %q, kept %t, starts %t (%v)", left, waits(t, store), starter.on, err)
	}
}

func TestKeepFails(t *testing.T) {
	t.Parallel()
	store, starter := opened(t), &fakeStarter{fail: errors.New("read-only file system")}
	if err := New(store, starter, aRun("stream", "boot-1")).Keep(t.Context()); !errors.Is(err, starter.fail) {
		t.Errorf("%v, want %v", err, starter.fail)
	}
	if waits(t, store) {
		t.Error("a run that nothing starts is kept")
	}
}
