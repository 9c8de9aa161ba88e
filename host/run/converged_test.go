package run

import (
	"testing"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// TestConvergedRunWritesTwoReports: its beginning and its end, however many documents there are. Each costs several fsyncs.
func TestConvergedRunWritesTwoReports(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x").plan = func(string, int) (pluginv1.Plan, error) { return pluginv1.Plan{}, nil }
	got := w.execute(Options{Mode: ModeApply, Stream: things(named, named, named)})
	if got.ExitCode != report.ExitOK || outcomes(got) != "Unchanged Unchanged Unchanged" {
		t.Fatalf("exit %d, outcomes %s", got.ExitCode, outcomes(got))
	}
	if w.reports != 2 {
		t.Errorf("%d reports were written, want 2", w.reports)
	}
}
