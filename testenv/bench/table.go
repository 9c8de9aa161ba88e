package bench

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Results are what benchmarks have reported: by the benchmark's name without its number of CPUs, then by unit, every
// value. Skipped holds the reasons of those that did not run.
type Results struct {
	Values  map[string]map[string][]float64
	Skipped map[string]string
}

// ReadResults reads the output of go test -bench and copies it to out as it comes.
func ReadResults(in io.Reader, out io.Writer) (Results, error) {
	r := Results{Values: map[string]map[string][]float64{}, Skipped: map[string]string{}}
	number := regexp.MustCompile(`-\d+$`)
	skip := regexp.MustCompile(`--- SKIP: (\S+)`)
	skipped := "" // the benchmark whose reason is awaited
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if _, err := fmt.Fprintln(out, line); err != nil {
			return r, err
		}
		if found := skip.FindStringSubmatch(line); found != nil {
			skipped = number.ReplaceAllString(found[1], "")
			r.Skipped[skipped] = "skipped"
			continue
		}
		if skipped != "" && strings.HasPrefix(line, " ") {
			_, reason, _ := strings.Cut(strings.TrimSpace(line), ": ")
			r.Skipped[skipped] = reason
		}
		skipped = ""
		r.take(strings.Fields(line), number)
	}
	return r, lines.Err()
}

// take reads one line of the benchmark format: a name, a number of iterations, and pairs of a value and its unit.
func (r Results) take(fields []string, number *regexp.Regexp) {
	if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
		return
	}
	if _, err := strconv.Atoi(fields[1]); err != nil {
		return
	}
	units := map[string][]float64{}
	for i := 2; i+1 < len(fields); i += 2 {
		value, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return
		}
		units[fields[i+1]] = append(units[fields[i+1]], value)
	}
	name := number.ReplaceAllString(fields[0], "")
	if r.Values[name] == nil {
		r.Values[name] = map[string][]float64{}
	}
	for unit, values := range units {
		r.Values[name][unit] = append(r.Values[name][unit], values...)
	}
}

// Row is one line of the table: two units of a benchmark and their required relation. Without a floor the value
// itself is compared.
type Row struct {
	Measure     string
	Benchmark   string
	Floor, Ours string // units
	How         How
	Target      float64
}

// How a row is compared.
type How int

const (
	// TimesAtMost means that ours is at most Target times the floor.
	TimesAtMost How = iota
	// TimesLess means that the floor is at least Target times ours.
	TimesLess
	// MoreAtMost means that ours is at most Target more than the floor.
	MoreAtMost
	// AtMost means that ours is at most Target.
	AtMost
)

// Rows are the table of docs/performance.md.
func Rows() []Row {
	return []Row{
		{"one document: start, handshake, plan, apply", "BenchmarkOneDocument", "bare-cpu-ms", "cpu-ms", TimesAtMost, 1.2},
		{"the same again, with nothing to do", "BenchmarkOneDocument", "bare-again-cpu-ms", "again-cpu-ms", TimesAtMost, 0},
		{"the same, image and state on disk", "BenchmarkOneDocument", "bare-cpu-ms", "disk-cpu-ms", TimesAtMost, 0},
		{"the same, first run on a machine", "BenchmarkOneDocument", "bare-cpu-ms", "first-cpu-ms", TimesAtMost, 0},
		{"a plugin's memory", "BenchmarkPluginMemory", "bare-RSS-MiB", "RSS-MiB", MoreAtMost, 3},
		{"the host's memory", "BenchmarkOneDocument", "", "host-RSS-MiB", AtMost, 30},
		{"8 converged documents, beside 8 bare plugins", "BenchmarkEightPlugins", "bare-cpu-ms", "eight-cpu-ms", TimesAtMost, 1.15},
		{"plan of a converged ContainerRuntime, beside noop", "BenchmarkContainerRuntime", "noop-cpu-ms", "cpu-ms", MoreAtMost, 0},
		{"the same, beside noop and containerd --version", "BenchmarkContainerRuntime", "noop-and-version-cpu-ms", "cpu-ms", MoreAtMost, 15},
		{"join of a worker, beside kubeadm itself", "BenchmarkKubernetesNode", "kubeadm-cpu-ms", "join-cpu-ms", MoreAtMost, 150},
		{"plan of a converged KubernetesNode", "BenchmarkKubernetesNode", "", "plan-cpu-ms", AtMost, 30},
		{"the same, beside noop", "BenchmarkKubernetesNode", "noop-cpu-ms", "plan-cpu-ms", MoreAtMost, 0},
		{"join of a domain", "BenchmarkDomainJoin", "", "join-wall-ms", AtMost, 1000},
		{"the same, beside adcli", "BenchmarkDomainJoin", "adcli-wall-ms", "join-wall-ms", TimesAtMost, 0},
		{"plan of a member", "BenchmarkDomainJoin", "", "member-wall-ms", AtMost, 150},
		{"validate 10 MiB in 4,000 documents: time", "BenchmarkLargeStream", "", "wall-ms", AtMost, 2000},
		{"validate 10 MiB in 4,000 documents: memory", "BenchmarkLargeStream", "", "RSS-MiB", AtMost, 200},
		{"validate 4,000 sysctl parameters: time", "BenchmarkParameters", "", "wall-ms", AtMost, 500},
		{"refuse 16 MiB of hostile YAML: memory", "BenchmarkHostileStream", "", "RSS-MiB", AtMost, 400},
		{"bootstrap data of a control plane", "BenchmarkBootstrapData", "", "cpu-ms", AtMost, 2},
		{"data of a worker: the manager, beside CABPK", "BenchmarkWorkers/beside", "cabpk-cpu-ms", "cpu-ms", TimesAtMost, 0.5},
		{"the same: requests to API servers", "BenchmarkWorkers/beside", "cabpk-requests", "requests", TimesAtMost, 1},
		{"data of all workers at once", "BenchmarkWorkers/beside", "cabpk-wall-ms", "wall-ms", TimesAtMost, 0.5},
		{"the same: memory", "BenchmarkWorkers/beside", "cabpk-RSS-MiB", "RSS-MiB", TimesAtMost, 0.7},
		{"data of one more worker", "BenchmarkWorkers/beside", "", "one-wall-ms", AtMost, 1000},
		{"a manager that starts beside them", "BenchmarkWorkers/beside", "", "restart-wall-ms", AtMost, 20000},
		{"100 Clusters of 2 Machines: memory", "BenchmarkClusters", "", "RSS-MiB", AtMost, 300},
		{"install the suite: curl, sha256sum, tar, sync", "BenchmarkInstall", "sync-wall-ms", "wall-ms", TimesAtMost, 1.3},
		{"the same, beside curl, sha256sum, tar", "BenchmarkInstall", "tar-wall-ms", "wall-ms", TimesAtMost, 1.3},
		{"the same: CPU", "BenchmarkInstall", "tar-cpu-ms", "cpu-ms", TimesAtMost, 0},
		{"the same: memory", "BenchmarkInstall", "", "RSS-MiB", AtMost, 170},
		{"verify a copy of a release, beside sha256sum", "BenchmarkVerification", "sha256sum-cpu-ms", "cpu-ms", TimesAtMost, 1.2},
		{"fetch 64 KiB over TLS, beside a bare source", "BenchmarkHTTP", "bare-cpu-ms", "cpu-ms", TimesAtMost, 1.3},
		{"fetch 15 MiB: memory of the plugin", "BenchmarkHTTP", "bare-15MiB-RSS-MiB", "15MiB-RSS-MiB", MoreAtMost, 4},
		{"resolve 15 MiB over TLS, beside curl and a file", "BenchmarkResolve", "curl-and-file-wall-ms", "wall-ms", TimesAtMost, 1.5},
		{"the same: memory of the host", "BenchmarkResolve", "", "RSS-MiB", AtMost, 90},
		{"decrypt 10 MiB, beside openssl kdf and 50 ms", "BenchmarkOpen10MiB", "openssl-and-50-wall-ms", "wall-ms", TimesAtMost, 1.2},
		{"dpkg -i of both packages, beside no scripts", "BenchmarkDpkg", "bare-wall-ms", "wall-ms", TimesAtMost, 2},
		{"a release for linux/amd64: archive", "BenchmarkRelease", "", "archive-MB", AtMost, 8},
		{"the same: debs", "BenchmarkRelease", "", "deb-MB", AtMost, 8},
		{"the same: installed", "BenchmarkRelease", "", "installed-MB", AtMost, 110},
		{"fetch script, beyond download and digest", "BenchmarkShell", "", "beyond-cpu-ms", AtMost, 60},
		{"the same four files: bash", "BenchmarkFourFiles", "bash-cpu-ms", "cpu-ms", TimesAtMost, 0},
		{"the same four files: Ignition", "BenchmarkFourFiles", "ignition-cpu-ms", "cpu-ms", TimesAtMost, 2.5},
		{"the same four files: cloud-init", "BenchmarkFourFiles", "cloud-init-cpu-ms", "cpu-ms", TimesLess, 20},
		{"the same four files: ansible-core", "BenchmarkFourFiles", "ansible-cpu-ms", "cpu-ms", TimesLess, 0},
	}
}

// WriteTable writes the rows in Markdown, and names those that were not measured.
func WriteTable(out io.Writer, rows []Row, r Results) error {
	table := [][]string{{"measure", "floor", "machineadm", "ratio", "target", "met"}}
	var missing []string
	for _, row := range rows {
		cells, ok := row.cells(r.Values[row.Benchmark])
		if !ok {
			missing = append(missing, fmt.Sprintf("%s (%s)", row.Measure, firstOf(r.Skipped[row.Benchmark], "not run")))
			continue
		}
		table = append(table, cells)
	}
	widths := make([]int, len(table[0]))
	for _, cells := range table {
		for i, c := range cells {
			widths[i] = max(widths[i], len(c))
		}
	}
	var text strings.Builder
	for i, cells := range table {
		for j, c := range cells {
			fmt.Fprintf(&text, "| %-*s ", widths[j], c)
		}
		text.WriteString("|\n")
		if i == 0 {
			for _, w := range widths {
				text.WriteString("|" + strings.Repeat("-", w+2))
			}
			text.WriteString("|\n")
		}
	}
	for _, m := range missing {
		fmt.Fprintf(&text, "left out: %s\n", m)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// cells are the cells of one row; ok reports whether it was measured.
func (row Row) cells(values map[string][]float64) (cells []string, ok bool) {
	ours, ok := median(values, row.Ours)
	if !ok {
		return nil, false
	}
	cells = []string{row.Measure, "", amount(ours, row.Ours), "", "", ""}
	floor, has := median(values, row.Floor)
	if row.Floor != "" && !has {
		return nil, false
	}
	if has {
		cells[1] = amount(floor, row.Floor)
	}
	met := false
	switch row.How {
	case TimesAtMost:
		cells[3], cells[4] = fmt.Sprintf("%.2f x", ours/floor), fmt.Sprintf("<= %g x", row.Target)
		met = ours <= row.Target*floor
	case TimesLess:
		cells[3], cells[4] = fmt.Sprintf("1/%.1f", floor/ours), fmt.Sprintf("<= 1/%g", row.Target)
		met = floor >= row.Target*ours
	case MoreAtMost:
		cells[3], cells[4] = fmt.Sprintf("%+.1f", ours-floor), fmt.Sprintf("<= %+g %s", row.Target, unitOf(row.Ours))
		met = ours-floor <= row.Target
	case AtMost:
		cells[4] = "<= " + amount(row.Target, row.Ours)
		met = ours <= row.Target
	}
	if row.Target == 0 { // for comparison only
		cells[4] = ""
		return cells, true
	}
	cells[5] = "no"
	if met {
		cells[5] = "yes"
	}
	return cells, true
}

func median(values map[string][]float64, unit string) (float64, bool) {
	all := values[unit]
	return Median(all), len(all) > 0
}

// unitOf is the last part of bare-cpu-ms.
func unitOf(unit string) string { return unit[strings.LastIndexByte(unit, '-')+1:] }

// amount is a value with what is measured: bare-cpu-ms is CPU time in ms.
func amount(value float64, unit string) string {
	parts := strings.Split(unit, "-")
	name := parts[len(parts)-1]
	digits := 1
	if value >= 100 {
		digits = 0
	}
	text := fmt.Sprintf("%.*f %s", digits, value, name)
	if name == "ms" {
		text += " " + map[string]string{"cpu": "CPU", "wall": "wall"}[parts[len(parts)-2]]
	}
	return text
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// Units are all that rows read of a benchmark, sorted.
func Units(rows []Row, benchmark string) []string {
	units := map[string]bool{}
	for _, row := range rows {
		if row.Benchmark == benchmark {
			units[row.Floor], units[row.Ours] = true, true
		}
	}
	delete(units, "")
	return slices.Sorted(maps.Keys(units))
}
