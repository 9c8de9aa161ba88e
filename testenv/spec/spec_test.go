package spec

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/pluginv1/pb"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/state"
)

const (
	root = "../.."
	file = root + "/contract/SPEC.md"
	held = root + "/contract/clauses.json"
)

func read(t *testing.T) (Spec, string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, problems := Parse(string(data))
	complain(t, problems)
	if len(s.Clauses) < 100 {
		t.Fatalf("%d clauses are found: the checks would hold over nothing", len(s.Clauses))
	}
	return s, string(data)
}

func complain(t *testing.T, problems []string) {
	t.Helper()
	for _, p := range problems {
		t.Errorf("SPEC.md: %s", p)
	}
}

func TestSpec(t *testing.T) {
	t.Parallel()
	s, _ := read(t)
	data, err := os.ReadFile(held)
	require.NoError(t, err)
	evidence, err := ParseEvidence(data)
	require.NoError(t, err)
	formatted, err := FormatEvidence(s, evidence)
	require.NoError(t, err)
	for name, problems := range map[string][]string{
		"numbers": Numbers(s), "held": Held(s, evidence), "sentences": Sentences(s, evidence), "words": Words(s, evidence),
		"tests": Tests(evidence, remembered(Source{Root: root})),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			complain(t, problems)
		})
	}
	t.Run("form", func(t *testing.T) {
		t.Parallel()
		assert.Equal(t, formatted, string(data), "clauses.json has the clauses in the order of SPEC.md, two blanks deep")
	})
}

func remembered(s Source) func(string) ([]TestFile, error) {
	known := map[string][]TestFile{}
	return func(pkg string) ([]TestFile, error) {
		if files, ok := known[pkg]; ok {
			return files, nil
		}
		files, err := s.TestFiles(pkg)
		known[pkg] = files
		return files, err
	}
}

// TestSpecEqualsTheCode compares SPEC.md with the constants of the code.
func TestSpecEqualsTheCode(t *testing.T) {
	t.Parallel()
	s, text := read(t)
	code := code{t: t, Source: Source{Root: root}}
	for _, table := range []struct {
		heading, head string
		want          [][]string
	}{
		{"15 Values", "value|is|clauses", code.values()},
		{"16 Notes", "value|is", [][]string{
			{"wait for processes at the end", duration(time.Duration(code.number("host/session", "killTimeout")))},
			{"shown of a log line", size(code.number("host/launch", "lineBytes"))},
			{"kept of standard error", size(code.number("host/launch", "tailBytes"))},
		}},
		{"Exit codes", "code|meaning|what the caller does", code.exits()},
		{"10 Errors (E)", "code|gRPC status|when a plugin answers it|what the runtime does", [][]string{
			{pluginv1.CodeInvalidConfig.String(), "INVALID_ARGUMENT"},
			{pluginv1.CodeUnsupported.String(), "UNIMPLEMENTED"},
			{pluginv1.CodePrecondition.String(), "FAILED_PRECONDITION"},
			{pluginv1.CodeRetry.String(), "UNAVAILABLE"},
			{pluginv1.CodeInternal.String(), "INTERNAL"},
		}},
		{"10 Errors (E)", "code|meaning|exit code", code.reportCodes()},
		{"3 Directories (D)", "what|Linux|Windows|mode", code.directories()},
		{"How a plugin is started", "variable|value|where", code.environment()},
		{"7 Protocol (P)", "call|served by a plugin", calls()},
		{"Bounds", "what|at most|what exceeds it", [][]string{
			{"diff of a change", size(pluginv1.MaxDiffBytes)},
			{"detail of an error", size(pluginv1.MaxDetailBytes)},
			{"every other text", size(pluginv1.MaxTextBytes)},
			{"json_schema of a kind", size(pluginv1.MaxSchemaBytes)},
			{"changes of a plan or an Apply", count(pluginv1.MaxChanges)},
			{"claims of a plan", count(pluginv1.MaxClaims)},
			{"files of a plan", count(pluginv1.MaxFiles)},
			{"warnings of a plan, and of an Apply", count(pluginv1.MaxWarnings)},
			{"violations of an error", count(pluginv1.MaxViolations)},
			{"facts of an error", count(pluginv1.MaxFacts)},
			{"names in a list of Describe", count(pluginv1.MaxNames)},
			{"needs of a plan", count(pluginv1.MaxNames)},
		}},
	} {
		complain(t, Same(table.heading, s.TableRows(table.heading, table.head), table.want))
	}
	complain(t, Used(s, s.TableRows("15 Values", "value|is|clauses")))
	for _, outcome := range code.outcomes() {
		if !strings.Contains(text, outcome) {
			t.Errorf("SPEC.md does not know the outcome %s", outcome)
		}
	}
	line := fmt.Sprintf("\n1|%d|unix|", pluginv1.ProtocolVersion)
	if !strings.Contains(text, line) {
		t.Errorf("SPEC.md has no example of the line that begins with %q", line[1:])
	}
}

// code reads the constants, and fails the test for missing ones.
type code struct {
	t *testing.T
	Source
}

func (c code) number(pkg, name string) int64 {
	c.t.Helper()
	n, err := c.Number(pkg, name)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

func (c code) constants(pkg string) []Constant {
	c.t.Helper()
	all, err := c.Constants(pkg)
	if err != nil {
		c.t.Fatal(err)
	}
	return all
}

func duration(d time.Duration) string {
	if d >= 2*time.Minute && d%time.Minute == 0 {
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

func size(n int64) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

func count(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

func (c code) values() [][]string {
	c.t.Helper()
	retry := run.DefaultRetry()
	return [][]string{
		{"name of the cookie", launch.Handshake().MagicCookieKey},
		{"cookie", launch.Handshake().MagicCookieValue},
		{"protocol version", strconv.Itoa(pluginv1.ProtocolVersion)},
		{"start deadline", duration(launch.DefaultTimeout)},
		{"largest message", size(pluginv1.MaxMessageBytes)},
		{"keepalive", duration(time.Duration(c.number("contract/launch", "keepaliveTime")))},
		{"plan deadline", duration(run.PlanTimeout)},
		{"apply deadline", duration(run.ApplyTimeout)},
		{"run deadline", duration(run.RunTimeout)},
		{"grace after Stop", duration(run.StopGrace)},
		{"first pause before a retry", duration(retry.First)},
		{"longest pause before a retry", duration(retry.Most)},
		{"longest time of retries", duration(retry.Total)},
		{"reboots of a stream", strconv.Itoa(run.MaxReboots)},
		{"kept reports", strconv.FormatInt(c.number("host/state", "keptReports"), 10)},
		{"largest stream", size(document.MaxStreamBytes)},
		{"most documents", count(document.MaxDocuments)},
		{"deepest nesting", count(document.MaxDepth)},
		{"longest key", count(document.MaxKeyBytes) + " bytes"},
		{"most structure", count(document.MaxStructure)},
		{"most errors of a document", count(document.MaxErrors)},
		{"largest part of an object", size(pluginv1.MaxChunkBytes)},
		{"shortest passphrase", count(pluginv1.MinPassphraseBytes) + " bytes"},
		{"longest passphrase", size(pluginv1.MaxPassphraseBytes)},
	}
}

// exits are the codes with the meaning that the code itself gives them.
func (c code) exits() [][]string {
	var out [][]string
	for _, k := range c.constants("contract/report") {
		if strings.HasPrefix(k.Name, "Exit") {
			out = append(out, []string{k.Value, k.Comment})
		}
	}
	return out
}

func (c code) reportCodes() [][]string {
	var out [][]string
	for _, k := range c.constants("contract/report") {
		if strings.HasPrefix(k.Name, "Code") {
			out = append(out, []string{strings.Trim(k.Value, `"`)})
		}
	}
	return out
}

func (c code) outcomes() []string {
	var out []string
	for _, k := range c.constants("contract/report") {
		if k.Type == "Outcome" {
			out = append(out, strings.Trim(k.Value, `"`))
		}
	}
	if len(out) < 10 {
		c.t.Errorf("only the outcomes %q are found", out)
	}
	return out
}

func (c code) directories() [][]string {
	c.t.Helper()
	const machine = "host/machine"
	textOf := func(folder, suffix, name string) string {
		value, err := c.Text(folder, suffix, name)
		if err != nil {
			c.t.Fatal(err)
		}
		return value
	}
	text := func(suffix, name string) string { return textOf(machine, suffix, name) }
	row := func(what, unixBase, windowsBase string, below ...string) []string {
		join := func(base, sep string) string { return strings.Join(append([]string{base}, below...), sep) }
		return []string{what, join(unixBase, "/"), join(windowsBase, `\`)}
	}
	stateDir, stateDirW := text("_unix.go", "StateDir"), text("_windows.go", "StateDir")
	runDir, runDirW := text("_unix.go", "RunDir"), text("_windows.go", "RunDir")
	return [][]string{
		row("plugin directories", strings.Join(naming.SearchDirectories("linux"), ", "), strings.Join(naming.SearchDirectories("windows"), ", ")),
		row("defaults file", text("_unix.go", "DefaultsFile"), text("_windows.go", "DefaultsFile")),
		row("state directory", stateDir, stateDirW),
		row("kept reports", stateDir, stateDirW, "reports"),
		row("plugins' own state", stateDir, stateDirW, "plugins", "BINARY", "KIND-NAME"),
		row("run directory", runDir, runDirW),
		row("report", runDir, runDirW, state.ReportFile),
		row("details", runDir, runDirW, state.DetailsFile),
		row("stream that waits for a reboot", stateDir, stateDirW, state.PendingFile),
		row("stream that failed after one", stateDir, stateDirW, state.RestingFile),
		row("report that is not delivered yet", stateDir, stateDirW, state.OutboxFile),
		row("record of what is written", stateDir, stateDirW, state.WritesFile),
		row("the same, of an image", textOf("host/state", "writes_unix.go", "ImageWrites"), textOf("host/state", "_windows.go", "ImageWrites")),
		row("lock", runDir, runDirW, "lock"),
		row("sentinel", text("_unix.go", "NewSentinel"), text("_windows.go", "NewSentinel")),
	}
}

// environment returns the environment that the code of this repository gives a plugin.
func (c code) environment() [][]string {
	c.t.Helper()
	everything := func(string) (string, bool) { return "given", true }
	nothing := func(string) (string, bool) { return "", false }
	values := map[string]string{}
	for _, entry := range launch.Environment("linux", nothing) {
		name, value, _ := strings.Cut(entry, "=")
		values[name] = value
	}
	names := func(goos string, drop ...string) string {
		var out []string
		for _, entry := range launch.Environment(goos, everything) {
			name, _, _ := strings.Cut(entry, "=")
			if !slices.Contains(drop, name) && !strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
				out = append(out, name)
			}
		}
		slices.Sort(out)
		return strings.Join(out, ", ")
	}
	if got := names("linux", "LANG", "HOME", "PATH"); got != "" {
		c.t.Errorf("a plugin on Linux is given %s, of which SPEC.md does not know", got)
	}
	windows := "PATH, SystemRoot, SystemDrive, windir, ProgramData, ProgramFiles, TEMP, TMP"
	sorted := strings.Split(windows, ", ")
	slices.Sort(sorted)
	if got := names("windows", "LANG"); got != strings.Join(sorted, ", ") {
		c.t.Errorf("a plugin on Windows is given %s, and SPEC.md says %s", got, windows)
	}
	return [][]string{
		{launch.Handshake().MagicCookieKey, launch.Handshake().MagicCookieValue},
		{"PLUGIN_PROTOCOL_VERSIONS"},
		{"PLUGIN_UNIX_SOCKET_DIR"},
		{"PLUGIN_MIN_PORT, PLUGIN_MAX_PORT"},
		{"PLUGIN_CLIENT_CERT"},
		{"LANG", values["LANG"]},
		{"HOME", "as the runtime has it, else " + values["HOME"]},
		{"PATH", values["PATH"]},
		{windows},
		{"HTTP_PROXY, HTTPS_PROXY, NO_PROXY, also in small letters"},
	}
}

// calls are those that a plugin serves: ours, and go-plugin's.
func calls() [][]string {
	var out [][]string
	add := func(service, method, stream string) {
		out = append(out, []string{"/" + service + "/" + method + stream})
	}
	plugin, configurator := pb.Plugin_ServiceDesc, pb.Configurator_ServiceDesc
	source, keys := pb.Source_ServiceDesc, pb.KeyProvider_ServiceDesc
	add(plugin.ServiceName, plugin.Methods[0].MethodName, "")
	add(configurator.ServiceName, configurator.Methods[0].MethodName, "")
	add(configurator.ServiceName, configurator.Streams[0].StreamName, " (a stream of events)")
	for _, m := range configurator.Methods[1:] {
		add(configurator.ServiceName, m.MethodName, "")
	}
	add(source.ServiceName, source.Streams[0].StreamName, " (a stream of parts)")
	for _, m := range source.Methods {
		add(source.ServiceName, m.MethodName, "")
	}
	for _, m := range keys.Methods {
		add(keys.ServiceName, m.MethodName, "")
	}
	return append(out, []string{"/plugin.GRPCController/Shutdown"}, []string{"/grpc.health.v1.Health/Check"},
		[]string{"/plugin.GRPCStdio/StreamStdio"}, []string{"/plugin.GRPCBroker/StartStream"})
}

// TestExitCodesAreKnown keeps the table of exit codes from being compared with nothing.
func TestExitCodesAreKnown(t *testing.T) {
	t.Parallel()
	exits := code{t: t, Source: Source{Root: root}}.exits()
	if len(exits) != report.ExitDiffers+1 || exits[0][0] != "0" || exits[0][1] == "" {
		t.Errorf("exit codes %q", exits)
	}
}
