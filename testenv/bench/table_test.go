package bench

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// output is what go test -bench writes: two runs of a benchmark, one that was skipped, and lines that are none.
const output = `goos: linux
BenchmarkOneDocument-2   	      20	        12.50 bare-cpu-ms	        20.00 cpu-ms	        16.30 host-RSS-MiB	         0 B/op
BenchmarkOneDocument-2   	      20	        13.50 bare-cpu-ms	        18.00 cpu-ms	        16.10 host-RSS-MiB	         0 B/op
BenchmarkPluginMemory-2  	       1	        12.0 bare-RSS-MiB	        13.5 RSS-MiB
BenchmarkDecode-2        	       2	 704221346 ns/op	  14.61 MB/s
BenchmarkFourFiles
BenchmarkFourFiles-2     	--- SKIP: BenchmarkFourFiles-2
    node_linux_test.go:20: needs root
BenchmarkLargeStream-2   	       1	      2500 wall-ms	       150.0 RSS-MiB
PASS
ok  	github.com/machineadm/machineadm/testenv/bench	9.5s
`

func TestTable(t *testing.T) {
	t.Parallel()
	var copied, got bytes.Buffer
	results, err := ReadResults(strings.NewReader(output), &copied)
	if err != nil {
		t.Fatal(err)
	}
	if copied.String() != output {
		t.Errorf("copied is\n%s", &copied)
	}
	if err := WriteTable(&got, Rows(), results); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "table.txt")
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil { //nolint:gosec // it is for everyone
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the table is\n%s\nwant\n%s", &got, want)
	}
}

// TestTargets: each comparison, on both sides of its target.
func TestTargets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		how                 How
		floor, ours, target float64
		want                string
	}{
		{TimesAtMost, 10, 13, 1.3, "yes"},
		{TimesAtMost, 10, 13.1, 1.3, "no"},
		{TimesLess, 100, 5, 20, "yes"},
		{TimesLess, 100, 5.1, 20, "no"},
		{MoreAtMost, 10, 13, 3, "yes"},
		{MoreAtMost, 10, 13.1, 3, "no"},
		{AtMost, 0, 30, 30, "yes"},
		{AtMost, 0, 30.1, 30, "no"},
		{TimesAtMost, 10, 1, 0, ""},
	} {
		row := Row{Ours: "cpu-ms", How: tt.how, Target: tt.target}
		values := map[string][]float64{"cpu-ms": {tt.ours}}
		if tt.how != AtMost {
			row.Floor, values["bare-cpu-ms"] = "bare-cpu-ms", []float64{tt.floor}
		}
		cells, ok := row.cells(values)
		if !ok || cells[5] != tt.want {
			t.Errorf("%+v: %q", tt, cells)
		}
	}
	if _, ok := (Row{Ours: "cpu-ms", Floor: "bare-cpu-ms"}).cells(map[string][]float64{"cpu-ms": {1}}); ok {
		t.Error("a row without its floor")
	}
}
