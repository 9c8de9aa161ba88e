package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/state"
)

// keep has a run wait in the state directory of the bench. It is one that fails, so that it changes nothing and writes
// no sentinel.
func keep(b *bench, stream string) {
	b.t.Helper()
	store, err := state.Open(b.state, b.machineID())
	if err != nil {
		b.t.Fatal(err)
	}
	streamDigest, err := store.StreamDigest([]byte(stream))
	if err != nil {
		b.t.Fatal(err)
	}
	err = store.KeepPending(state.Pending{
		StreamDigest: streamDigest, BootID: "an earlier boot", File: "/run/gone.yaml", Phase: "all", Timeout: run.RunTimeout,
		PluginDirs: []string{b.plugins}, Proxies: []string{"https_proxy=http://kept:3128", "HTTP_PROXY=http://kept:3128"}, Stream: []byte(stream),
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// resumed resumes the pending run without the saved flags.
func (b *bench) resumed(args ...string) result {
	b.t.Helper()
	return execute(b.t, nil, append([]string{"apply", "--resume", "--state-dir", b.state, "--run-dir", b.runs}, args...)...)
}

func TestResumeNeedsNoStream(t *testing.T) {
	b := newBench(t)
	b.noop("")
	keep(b, noopDoc("waits", "plan: precondition"))
	for range 2 {
		got := b.resumed()
		want := "the stream was saved; to resume: machineadm apply --resume --state-dir " + b.state + " --run-dir " + b.runs
		if got.code != report.ExitPrecondition || !strings.Contains(got.errOut, "/run/gone.yaml:2:1: Noop/waits") || !strings.Contains(got.errOut, want) {
			t.Fatalf("%s", got)
		}
		if r := b.report(); r.Resume != report.ResumeByHand || r.StreamDigest == "" {
			t.Errorf("report: %+v", r)
		}
		status := execute(t, nil, "status", "--state-dir", b.state, "--run-dir", b.runs)
		if !strings.Contains(status.out, want) {
			t.Errorf("status: %s", status)
		}
	}
}

func TestDamagedResume(t *testing.T) {
	b := newBench(t)
	keep(b, "kind: X\n")
	path := filepath.Join(b.state, state.PendingFile)
	if err := os.WriteFile(path, []byte(`{"version": 1, "stream": "c4n4ry"`), 0o600); err != nil {
		t.Fatal(err)
	}
	got := b.resumed()
	if got.code != report.ExitState || !strings.Contains(got.errOut, path+" is damaged") || strings.Contains(got.errOut, "c4n4ry") {
		t.Errorf("%s", got)
	}
	if got := b.resumed("--output", "json"); got.code != report.ExitState || !strings.Contains(got.out, `"code":"State"`) {
		t.Errorf("%s", got)
	}
}

func TestNothingToResume(t *testing.T) {
	b := newBench(t)
	if got := b.resumed(); got.code != report.ExitOK || got.out != "nothing to resume in "+b.state+"\n" || got.errOut != "" {
		t.Errorf("%s", got)
	}
	if got := b.resumed("--output", "json"); got.code != report.ExitOK || !strings.Contains(got.out, `"outcome":"Succeeded"`) {
		t.Errorf("%s", got)
	}
}
