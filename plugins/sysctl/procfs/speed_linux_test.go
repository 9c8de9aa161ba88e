package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPlanOfThousandsOfKeys: planning 4,000 keys, fresh and converged, takes some 0.2 s of processor time, and not the minutes of a
// comparison of each with each.
func TestPlanOfThousandsOfKeys(t *testing.T) { //nolint:paralleltest // measures the process
	b := newFixture(t, nil)
	var spec []string
	for i := range 4000 {
		b.kernel.Parameters[fmt.Sprintf("net/ipv4/conf/eth%d/rp_filter", i)] = "0"
		spec = append(spec, fmt.Sprintf(`"net.ipv4.conf.eth%d.rp_filter":1`, i))
	}
	text := `{"parameters":{` + strings.Join(spec, ",") + `}}`
	for _, state := range []string{"fresh", "converged"} {
		before := processorTime(t)
		planned, err := b.plan(t, text)
		assert.Less(t, processorTime(t)-before, 10*time.Second, state)
		require.NoError(t, err)
		for _, change := range planned.Changes {
			require.NoError(t, change.Do(t.Context(), &recorder{}))
		}
	}
}

func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
