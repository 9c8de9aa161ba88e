package run

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	machine "github.com/machineadm/machineadm/internal/require"
)

// TestNothingWaitsForADerivation: an interruption, the limit of a run and that of planning end a run at once, without the result of
// a derivation: that the document cannot be decrypted.
func TestNothingWaitsForADerivation(t *testing.T) {
	t.Parallel()
	document := encrypted(t, "slow", thing("a"))
	require.Contains(t, document, `"210000"`)
	interrupt := make(chan struct{})
	for name, tt := range map[string]struct {
		iterations   string
		options      Options
		onPassphrase func()
		exit         int
		says         string
	}{
		"an interruption": {
			"10000000", Options{Mode: ModeApply, Interrupt: interrupt}, func() { close(interrupt) }, report.ExitInterrupted, "interrupted",
		},
		"the limit of the run": {
			"2000000", Options{Mode: ModeApply, Timeout: 50 * time.Millisecond}, nil, report.ExitDeadline, "the run took longer than its 50ms",
		},
		"the limit of planning": {
			"2000000", Options{Mode: ModePlan, ResolveOnly: true, PlanTimeout: 50 * time.Millisecond}, nil, report.ExitDeadline, "not delivered within 50ms",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.serve("web", nil).onPassphrase = tt.onPassphrase
			tt.options.Text = []byte(strings.Replace(document, "210000", tt.iterations, 1))
			began := time.Now()
			got := w.execute(tt.options)
			if took := time.Since(began); tt.options.Interrupt != nil { // it would take 3 s or more
				assert.Less(t, took, machine.Timeout(time.Second))
			}
			assert.Equal(t, tt.exit, got.ExitCode, errorsOf(got))
			assert.Contains(t, errorsOf(got), tt.says)
			assert.NotContains(t, errorsOf(got), "cannot be decrypted")
		})
	}
}
