package bench

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/testenv/bench/bare"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// BenchmarkOneDocument writes one file through one document, in turn with the bare pair: everything in memory, then again
// with nothing left to do, then with image and state on disk, then as the first run on a machine, which does not know its
// plugins' files yet.
func BenchmarkOneDocument(b *testing.B) {
	s := newScene(b)
	yaml, asJSON := document("one", "bench", oneFile())
	stream, request := s.write(filepath.Join(s.in, "one.yaml"), yaml), s.write(filepath.Join(s.in, "one.json"), asJSON)
	onDisk := *s
	onDisk.move(b.TempDir(), b.TempDir())
	s.remember(stream, "bench")
	onDisk.remember(stream, "bench")
	var floor, ours, floorAgain, again, disk, first Samples
	for b.Loop() {
		for range 15 {
			s.forget()
			floor = append(floor, s.measure(s.bare("apply", request, 1)...))
			s.forget()
			ours = append(ours, s.measure(s.machineadm("apply", stream, s.state)...))
			floorAgain = append(floorAgain, s.measure(s.bare("plan", request, 1)...))
			again = append(again, s.measure(s.machineadm("apply", stream, s.state)...))
			onDisk.forget()
			disk = append(disk, onDisk.measure(onDisk.machineadm("apply", stream, onDisk.state)...))
			s.forget()
			first = append(first, s.measure(s.machineadm("apply", stream, filepath.Join(memoryDir(b), "state"))...))
		}
	}
	b.ReportMetric(0, "ns/op") // what is measured are processes
	b.ReportMetric(floor.CPU(), "bare-cpu-ms")
	b.ReportMetric(ours.CPU(), "cpu-ms")
	b.ReportMetric(floorAgain.CPU(), "bare-again-cpu-ms")
	b.ReportMetric(again.CPU(), "again-cpu-ms")
	b.ReportMetric(disk.CPU(), "disk-cpu-ms")
	b.ReportMetric(first.CPU(), "first-cpu-ms")
	b.ReportMetric(ours.CPU()/floor.CPU(), "x-bare")
	b.ReportMetric(floor.Wall(), "bare-wall-ms")
	b.ReportMetric(ours.Wall(), "wall-ms")
	b.ReportMetric(ours.MaxRSS(), "host-RSS-MiB") // the largest of its processes
}

// BenchmarkEightPlugins plans eight documents of eight plugins, all of them converged.
func BenchmarkEightPlugins(b *testing.B) {
	s := newScene(b)
	var all, providers []string
	_, asJSON := document("one", provider(0), oneFile())
	for i := range many {
		yaml, _ := document(fmt.Sprintf("d%d", i), provider(i), oneFile())
		all, providers = append(all, yaml), append(providers, provider(i))
	}
	stream := s.write(filepath.Join(s.in, "eight.yaml"), strings.Join(all, "---\n"))
	request := s.write(filepath.Join(s.in, "one.json"), asJSON)
	s.remember(stream, providers...)
	var floor, ours Samples
	for b.Loop() {
		for range 10 {
			floor = append(floor, s.measure(s.bare("plan", request, many)...))
			ours = append(ours, s.measure(s.machineadm("apply", stream, s.state)...))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(floor.CPU(), "bare-cpu-ms")
	b.ReportMetric(ours.CPU(), "eight-cpu-ms")
	b.ReportMetric(ours.CPU()/floor.CPU(), "x-bare")
	b.ReportMetric(floor.Wall(), "bare-wall-ms")
	b.ReportMetric(ours.Wall(), "eight-wall-ms")
}

// BenchmarkLargeStream validates 10 MiB in 4,000 documents.
func BenchmarkLargeStream(b *testing.B) {
	const documents, size = 4000, 10 << 20
	s := newScene(b)
	var text strings.Builder
	for i := range documents {
		path := fmt.Sprintf("/etc/bench/%d.conf", i) // two documents that want different things of one file are refused
		yaml, _ := document(fmt.Sprintf("d%d", i), "bench", map[string]string{path: "x"})
		filler := strings.Repeat("x", size/documents-len(yaml)-len("---\n"))
		yaml, _ = document(fmt.Sprintf("d%d", i), "bench", map[string]string{path: "x" + filler})
		text.WriteString("---\n" + yaml)
	}
	stream := s.write(filepath.Join(s.in, "large.yaml"), text.String())
	b.SetBytes(int64(text.Len()))
	var ours Samples
	for b.Loop() {
		for range 3 {
			ours = append(ours, s.measure(s.machineadm("validate", stream, "")...))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ours.CPU(), "cpu-ms")
	b.ReportMetric(ours.Wall(), "wall-ms")
	b.ReportMetric(ours.MaxRSS(), "RSS-MiB")
}

// BenchmarkParameters validates a document of 4,000 sysctl parameters: the plan of each, against an empty root.
func BenchmarkParameters(b *testing.B) {
	s := newScene(b)
	var text strings.Builder
	text.WriteString("apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Sysctl\nmetadata: {name: many}\nspec:\n  provider: procfs\n  parameters:\n")
	for i := range 4000 {
		fmt.Fprintf(&text, "    net.ipv4.conf.eth%d.rp_filter: 1\n", i)
	}
	stream := s.write(filepath.Join(s.in, "many.yaml"), text.String())
	var ours Samples
	for b.Loop() {
		for range 5 {
			ours = append(ours, s.measure(s.machineadm("validate", stream, "")...))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ours.CPU(), "cpu-ms")
	b.ReportMetric(ours.Wall(), "wall-ms")
}

// BenchmarkHostileStream has the host refuse 16 MiB of input that costs a parser the most memory.
func BenchmarkHostileStream(b *testing.B) {
	s := newScene(b)
	var ours Samples
	for b.Loop() {
		for i, part := range []string{"! ", "&a ", "[", `"" `} {
			stream := s.write(filepath.Join(s.in, fmt.Sprintf("hostile%d.yaml", i)), strings.Repeat(part, 16<<20/len(part)-64))
			ours = append(ours, s.refused(s.machineadm("validate", stream, "")...))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ours.CPU(), "cpu-ms")
	b.ReportMetric(ours.MaxRSS(), "RSS-MiB")
}

// BenchmarkPluginMemory has each plugin plan and apply one document and reads its peak from the kernel.
func BenchmarkPluginMemory(b *testing.B) {
	s := newScene(b)
	_, request := document("one", "bench", oneFile())
	var floor, ours []float64
	for b.Loop() {
		for range 5 {
			floor = append(floor, s.bareMemory([]byte(request)))
			ours = append(ours, s.memory([]byte(request)))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(Median(floor), "bare-RSS-MiB")
	b.ReportMetric(Median(ours), "RSS-MiB")
}

func (s *scene) bareMemory(request []byte) float64 {
	s.b.Helper()
	s.forget()
	h, err := bare.Start(s.b.Context(), s.path(barePlugin(0)))
	if err != nil {
		s.b.Fatal(err)
	}
	defer h.Kill()
	if err := h.Plan(s.b.Context(), request, s.root); err != nil {
		s.b.Fatal(err)
	}
	if err := h.Apply(s.b.Context(), request, s.root); err != nil {
		s.b.Fatal(err)
	}
	return s.peak(h.PID())
}

func (s *scene) memory(document []byte) float64 {
	s.b.Helper()
	s.forget()
	binary := s.path(filePlugin("bench"))
	p, err := launch.Start(s.b.Context(), launch.Options{
		Command: exec.CommandContext(s.b.Context(), binary), Environment: launch.Environment("linux", os.LookupEnv),
		SocketDir: s.run, Stderr: io.Discard,
	})
	if err != nil {
		s.b.Fatal(err)
	}
	defer p.Kill()
	t := target.Target{OS: "linux", Architecture: "amd64", Distribution: "debian", Version: "12"}
	if _, err := p.Describe(s.b.Context(), pluginv1.DescribeRequest{Root: s.root, Target: t}); err != nil {
		s.b.Fatal(err)
	}
	r := pluginv1.Request{Document: document, Root: s.root, Target: t, StateDir: s.state}
	if _, err := p.Plan(s.b.Context(), r); err != nil {
		s.b.Fatal(err)
	}
	finished, err := p.Apply(s.b.Context(), r, 0, func(pluginv1.Event) error { return nil })
	if err != nil || finished.Error != nil {
		s.b.Fatalf("%v %v", err, finished.Error)
	}
	return s.peak(p.PID())
}

func (s *scene) peak(pid int) float64 {
	s.b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		s.b.Fatal(err)
	}
	kib, err := PeakRSS(string(status))
	if err != nil {
		s.b.Fatal(err)
	}
	return float64(kib) / 1024
}

// TestRowsAreMeasured: each unit that the table reads is reported by its benchmark.
func TestRowsAreMeasured(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	files, err := filepath.Glob("*_linux_test.go")
	if err != nil {
		t.Fatal(err)
	}
	// Some are beside what they need.
	files = append(files, "../controller/bench_linux_test.go", "../controller/clusters_linux_test.go", "../download/bench_linux_test.go",
		"../envelope/bench_test.go", "../fetch/bench_linux_test.go", "../packages/bench_test.go",
		"../sources/bench_linux_test.go")
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(data)
	}
	for _, row := range Rows() {
		function, _, _ := strings.Cut(row.Benchmark, "/")
		_, body, found := strings.Cut(source.String(), "func "+function+"(")
		body, _, _ = strings.Cut(body, "\n}\n")
		if !found {
			t.Errorf("%s is not there", row.Benchmark)
		}
		for _, unit := range Units(Rows(), row.Benchmark) {
			if !strings.Contains(body, `"`+unit+`"`) {
				t.Errorf("%s does not report %s", row.Benchmark, unit)
			}
		}
	}
}
