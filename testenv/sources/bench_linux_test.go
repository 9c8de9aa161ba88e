package sources

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/bench"
)

// BenchmarkHTTP fetches 64 KiB and 15 MiB over local TLS, in turn with a bare source: go-plugin and net/http with their defaults. Each
// sample is a process of its own, with its start. Targets: 1.3 times the processor time for 64 KiB, 4 MiB more memory for 15 MiB.
func BenchmarkHTTP(b *testing.B) {
	a := authority.New(b)
	small, large := sized(64<<10), sized(15<<20)
	at := serve(b, a, func(w http.ResponseWriter, r *http.Request) {
		data := small
		if r.URL.Path == "/large" {
			data = large
		}
		_, _ = w.Write(data) // the client checks
	})
	dir := built(b, map[string]string{"http": "plugins/remote-config/http", "bare": "testenv/sources/bare"})
	cpu, wall, rss := map[string][]float64{}, map[string][]float64{}, map[string][]float64{}
	for b.Loop() {
		for range 15 {
			for _, plugin := range []string{"bare", "http"} {
				for _, size := range []string{"small", "large"} {
					began := time.Now()
					r := do(b, Call{Plugin: filepath.Join(dir, plugin), Spec: spec(a, at+"/"+size, nil)})
					require.Nil(b, r.Error)
					require.Contains(b, []int{len(small), len(large)}, r.Size)
					peak, err := bench.PeakRSS(r.Status)
					require.NoError(b, err)
					key := plugin + size
					cpu[key] = append(cpu[key], float64(r.CPU)/1e6)
					wall[key] = append(wall[key], float64(time.Since(began))/1e6)
					rss[key] = append(rss[key], float64(peak)/1024)
				}
			}
		}
	}
	b.ReportMetric(0, "ns/op") // what is measured are processes
	b.ReportMetric(bench.Median(cpu["baresmall"]), "bare-cpu-ms")
	b.ReportMetric(bench.Median(cpu["httpsmall"]), "cpu-ms")
	b.ReportMetric(bench.Median(cpu["httpsmall"])/bench.Median(cpu["baresmall"]), "x-bare")
	b.ReportMetric(bench.Median(wall["barelarge"]), "bare-15MiB-wall-ms")
	b.ReportMetric(bench.Median(wall["httplarge"]), "15MiB-wall-ms")
	b.ReportMetric(slices.Max(rss["barelarge"]), "bare-15MiB-RSS-MiB")
	b.ReportMetric(slices.Max(rss["httplarge"]), "15MiB-RSS-MiB")
}

// BenchmarkResolve resolves a stream of 15 MiB on a server with TLS, in turn with what curl takes for its bytes and machineadm for the same
// stream in a file. Each sample is a process of its own. Targets: 1.5 times both together, and 4 times the stream and 30 MiB of memory.
func BenchmarkResolve(b *testing.B) {
	a := authority.New(b)
	var stream bytes.Buffer
	for i := range 3000 {
		fmt.Fprintf(&stream, "---\n%s", noop(fmt.Sprintf("n%d", i), "/"+strings.Repeat("x", 5000), ""))
	}
	at := serve(b, a, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(stream.Bytes()) }) // the client checks
	programs, plugins := built(b, map[string]string{"machineadm": "host/cmd/machineadm", "measure": "testenv/bench/cmd/measure"}), filepath.Dir(httpPlugin(b))
	file := func(name string, data []byte) string {
		path := filepath.Join(b.TempDir(), name)
		require.NoError(b, os.WriteFile(path, data, 0o600))
		return path
	}
	resolve := []string{filepath.Join(programs, "machineadm"), "resolve", "--plugin-dir", plugins, "--path"}
	commands := map[string][]string{
		"curl":   {"curl", "-sSf", "--cacert", file("ca.pem", a.Certificate), "-o", filepath.Join(b.TempDir(), "out"), at},
		"file":   append(slices.Clone(resolve), file("stream.yaml", stream.Bytes())),
		"server": append(slices.Clone(resolve), file("outer.yaml", Remote(b, "outer", "http", at, map[string]any{"ca": string(a.Certificate)}))),
	}
	took := map[string]bench.Samples{}
	for b.Loop() {
		for range 5 {
			for _, name := range []string{"curl", "file", "server"} {
				out, err := exec.CommandContext(b.Context(), filepath.Join(programs, "measure"), commands[name]...).Output()
				require.NoError(b, err)
				usage, err := bench.ParseUsage(out)
				require.NoError(b, err)
				took[name] = append(took[name], usage)
			}
		}
	}
	b.ReportMetric(0, "ns/op") // what is measured are processes
	b.ReportMetric(took["curl"].Wall()+took["file"].Wall(), "curl-and-file-wall-ms")
	b.ReportMetric(took["server"].Wall(), "wall-ms")
	b.ReportMetric(took["server"].MaxRSS(), "RSS-MiB")
}
