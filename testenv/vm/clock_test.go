package vm

import (
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// clock: a first boot is when a clock jumps, by years in either direction. Runs before, after and across the jump do
// their work and report correctly; the last run is the last that ran, not the one with the latest date.
func clock(t *testing.T, n *nodes.Node) {
	before := now(t, n)
	defer n.MustExec(t, "date", "--set=@"+before)
	for _, jump := range []string{"+3 years", "-9 years", "+40 days"} {
		t.Run(jump, func(t *testing.T) {
			earlier := lastReport(t, n).RunID
			n.MustExec(t, "date", "--set="+jump)
			n.MustExec(t, "sh", "-c", "rm /etc/sysctl.d/99-machineadm-tuning.conf; echo 60 >/proc/sys/vm/swappiness; rmmod dummy")
			began := clockOf(t, n)
			expect(t, n, report.ExitOK, "machineadm", "apply", "--path", nodeFile)
			r := sane(t, n, report.Unchanged, report.Changed)
			if r.RunID == earlier {
				t.Errorf("the report is still that of run %s", earlier)
			}
			if r.StartedAt.Before(began.Add(-time.Second)) || r.FinishedAt.After(clockOf(t, n).Add(time.Second)) {
				t.Errorf("from %s to %s, but the clock began at %s", r.StartedAt, r.FinishedAt, began)
			}
			live(t, n, values(), modules()...)
			apply(t, n, nodeFile, report.Unchanged)
			if out := n.MustExec(t, "machineadm", "status").Stdout; !strings.HasPrefix(out, "Succeeded: 2 documents") {
				t.Errorf("status:\n%s", out)
			}
		})
	}
	t.Run("while it runs", func(t *testing.T) {
		for _, step := range []string{"+30 days", "-30 days"} {
			n.MustExec(t, "sh", "-c", "rm /etc/sysctl.d/99-machineadm-*.conf; echo 60 >/proc/sys/vm/swappiness")
			// Repeatedly, so that every part of the run is covered.
			expect(t, n, report.ExitOK, "sh", "-c", `
				machineadm apply --path "$1" &
				while kill -0 $! 2>/dev/null; do
					date --set="$2" >/dev/null
					sleep 0.05
				done
				wait $!`, "sh", nodeFile, step)
			sane(t, n, report.Changed, report.Changed)
			live(t, n, values(), modules()...)
		}
	})
}

// sane checks the report of a run with these outcomes: no value in it is a difference between two clocks.
func sane(t *testing.T, n *nodes.Node, outcomes ...report.Outcome) report.Report {
	t.Helper()
	r := lastReport(t, n)
	if r.Outcome != report.RunSucceeded || r.ExitCode != report.ExitOK || len(r.Documents) != len(outcomes) {
		t.Fatalf("report: %+v", r)
	}
	const most = 10 * 60 * 1000 // milliseconds, far more than the run took and far less than any jump
	for i, d := range r.Documents {
		if d.Outcome != outcomes[i] {
			t.Errorf("document %s is %s, want %s", d.Name, d.Outcome, outcomes[i])
		}
		if d.DurationMs < 0 || d.DurationMs > most {
			t.Errorf("document %s took %d ms", d.Name, d.DurationMs)
		}
		for _, c := range d.Changes {
			if c.DurationMs < 0 || c.DurationMs > most {
				t.Errorf("change %s of %s took %d ms", c.ID, d.Name, c.DurationMs)
			}
		}
	}
	if r.StartedAt.IsZero() || r.FinishedAt.IsZero() {
		t.Errorf("from %s to %s", r.StartedAt, r.FinishedAt)
	}
	return r
}

func now(t *testing.T, n *nodes.Node) string {
	t.Helper()
	return strings.TrimSpace(n.MustExec(t, "date", "+%s").Stdout)
}

func clockOf(t *testing.T, n *nodes.Node) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(n.MustExec(t, "date", "--utc", "+%Y-%m-%dT%H:%M:%SZ").Stdout))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestWrongClock: a machine boots with the clock that the test gives it.
func TestWrongClock(t *testing.T) {
	needs.Tier(t, needs.VM)
	needs.Campaign(t) // of the test environment alone
	t.Parallel()
	const off = -6 * time.Hour
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Bookworm, VM: true, NoWait: true, Clock: off})
	if got := time.Until(clockOf(t, n)); got < off-time.Minute || got > off+time.Minute {
		t.Errorf("the clock is off by %s, want %s", got, off)
	}
}
