package fetch

import (
	"bytes"
	"net/http"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkShell measures the processor time of the script beyond a download and a digest, for a file of the size of
// machineadm. Target: at most 60 ms.
func BenchmarkShell(b *testing.B) {
	data := append([]byte(program), bytes.Repeat([]byte("# padding\n"), 16<<20/10)...)
	bench := newBench(b, serve(b, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }))
	bench.head.AMD64, bench.head.ARM64 = digest(data), digest(data)
	var script, plain time.Duration
	for b.Loop() {
		c, _, _ := bench.command(b.Context(), "/bin/dash")
		script += cpu(c)
		require.Equal(b, ranCode, c.ProcessState.ExitCode())
		out := filepath.Join(bench.dir, "plain")
		plain += cpu(exec.CommandContext(b.Context(), "curl", "-fsS", "-o", out, bench.head.URLs[0]+"/x"))
		plain += cpu(exec.CommandContext(b.Context(), "sha256sum", out))
	}
	perRun := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / float64(b.N) }
	b.ReportMetric(perRun(script), "script-cpu-ms")
	b.ReportMetric(perRun(plain), "plain-cpu-ms")
	b.ReportMetric(perRun(script-plain), "beyond-cpu-ms")
}

// cpu runs a command and returns its processor time, with that of its children.
func cpu(c *exec.Cmd) time.Duration {
	_ = c.Run() // the caller checks the exit code
	usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
