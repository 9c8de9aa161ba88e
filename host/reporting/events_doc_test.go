package reporting

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run"
)

const eventsDoc = "../../docs/reference/events.md"

// page is the document, by its headings.
func page(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(eventsDoc)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, section := range strings.Split(string(data), "\n## ")[1:] {
		heading, body, _ := strings.Cut(section, "\n")
		sections[heading] = body
	}
	return sections
}

// tableRows are the cells of the tables in a section, by the code in their first cell.
func tableRows(section string) map[string][]string {
	rows := map[string][]string{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if name, ok := strings.CutPrefix(cells[0], "`"); ok && len(cells) > 1 {
			rows[strings.TrimSuffix(name, "`")] = cells[1:]
		}
	}
	return rows
}

// objects are the JSON objects of an event, by the heading that describes them.
func objects() map[string]any {
	return map[string]any{
		"Event": jsonEvent{}, "Document": jsonDocument{}, "Change": jsonChange{}, "Error": report.Error{}, "Report": report.Report{},
		"Host": report.Host{}, "Reboot": report.Reboot{}, "Documents of the report": report.Document{}, "Plugin": report.Plugin{}, "Stage": report.Stage{}, "Wait": report.Wait{}, "Changes of the report": report.Change{},
	}
}

// TestEveryFieldIsDocumented compares each table with the struct that is encoded: names, order apart, types, and whether
// a field is always there. An object that no table describes has no heading.
func TestEveryFieldIsDocumented(t *testing.T) {
	t.Parallel()
	sections := page(t)
	headings := map[reflect.Type]string{}
	for heading, of := range objects() {
		headings[reflect.TypeOf(of)] = heading
	}
	for heading, of := range objects() {
		rows := tableRows(sections[heading])
		for field := range reflect.TypeOf(of).Fields() {
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			row, ok := rows[name]
			if !ok || len(row) != 3 {
				t.Errorf("%s: the field %s is not documented with its type, its presence and its meaning", heading, name)
				continue
			}
			delete(rows, name)
			if want := jsonType(t, field.Type, headings); row[0] != want && !strings.HasPrefix(row[0], want+", ") {
				t.Errorf("%s: %s is documented as %q, and is %q", heading, name, row[0], want)
			}
			if strings.HasSuffix(name, "Ms") != strings.HasSuffix(row[0], ", milliseconds") {
				t.Errorf("%s: %s is documented as %q, without its unit", heading, name, row[0])
			}
			if always := !strings.Contains(options, "omit"); always != (row[1] == "always") || row[1] == "" || row[2] == "" {
				t.Errorf("%s: %s is documented as present %q and meaning %q; it is there always: %v", heading, name, row[1], row[2], always)
			}
		}
		for name := range rows {
			t.Errorf("%s: the field %s is documented, and there is none", heading, name)
		}
	}
}

// jsonType is what the document calls a type.
func jsonType(t *testing.T, of reflect.Type, headings map[reflect.Type]string) string {
	t.Helper()
	switch {
	case of == reflect.TypeFor[time.Time]():
		return "time"
	case of.Kind() == reflect.Pointer:
		return jsonType(t, of.Elem(), headings)
	case of == reflect.TypeFor[map[string]string]():
		return "object of strings"
	case of.Kind() == reflect.Slice:
		return "array of " + jsonType(t, of.Elem(), headings)
	case of.Kind() == reflect.String:
		return "string"
	case of.Kind() == reflect.Bool:
		return "boolean"
	case of.Kind() == reflect.Int, of.Kind() == reflect.Int64:
		return "integer"
	}
	heading, ok := headings[of]
	if !ok {
		t.Errorf("no table describes %s", of)
	}
	return "[" + strings.ToLower(heading) + "](#" + strings.ReplaceAll(strings.ToLower(heading), " ", "-") + ")"
}

// TestEveryEventIsDocumented compares the types of events with the constants of host/run, and their fields with those
// that all the runs of these tests have.
func TestEveryEventIsDocumented(t *testing.T) {
	t.Parallel()
	rows := tableRows(page(t)["Types of events"])
	known := slices.Sorted(maps.Values(constants(t, "../run", "EventType")))
	if documented := slices.Sorted(maps.Keys(rows)); !slices.Equal(documented, known) || len(known) < 10 {
		t.Errorf("documented are %q; there are %q", documented, known)
	}
	seen := map[string]map[string]bool{}
	for line := range strings.Lines(events(t, slices.Concat(exampleEvents(), planEvents(), applied(reports()["image"]), applied(reports()["failed"])))) {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		kind := strings.Trim(string(fields["type"]), `"`)
		if seen[kind] == nil {
			seen[kind] = map[string]bool{}
		}
		for name := range fields {
			seen[kind][name] = true
		}
	}
	for kind, row := range rows {
		want := append([]string{"time", "type"}, strings.Fields(strings.ReplaceAll(row[0], "`", " "))...)
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(seen[kind])); !slices.Equal(got, want) {
			t.Errorf("%s is documented with %q, and has %q", kind, want, got)
		}
	}
}

// TestEveryValueIsDocumented looks for the constants of contract/report and for the codes of plugins.
func TestEveryValueIsDocumented(t *testing.T) {
	t.Parallel()
	sections := page(t)
	outcomes, codes := tableRows(sections["Outcomes"]), tableRows(sections["Codes"])
	if documented, known := slices.Sorted(maps.Keys(outcomes)), constants(t, "../../contract/report", "Outcome"); !slices.Equal(
		documented, slices.Compact(slices.Sorted(maps.Values(known)))) { // a document and a run share some
		t.Errorf("documented are the outcomes %q; there are %q", documented, known)
	}
	for name, value := range constants(t, "../../contract/report", "") {
		if strings.HasPrefix(name, "Code") {
			if _, ok := codes[value]; !ok {
				t.Errorf("the code %s is not documented", value)
			}
			delete(codes, value)
		}
	}
	for code := range pluginv1.Code(100) {
		if _, ok := codes[code.String()]; !ok && code.String() != "Internal" {
			t.Errorf("the code %s is not documented", code)
		}
		delete(codes, code.String())
	}
	for value := range maps.Keys(codes) {
		t.Errorf("the code %s is documented, and there is none", value)
	}
	values := []string{pluginv1.RebootAfterRun.String(), pluginv1.RebootBeforeNext.String(), report.ReasonLive, report.ReasonPhase, report.APIVersion, report.Kind}
	for _, value := range constants(t, "../../contract/report", "Resume") {
		values = append(values, value)
	}
	for _, value := range values {
		if !strings.Contains(sections["Event"]+sections["Change"]+sections["Report"], "`"+value+"`") {
			t.Errorf("the value %s is not documented", value)
		}
	}
}

// constants are the values of a package's string constants by their names, of a named type, or of none.
func constants(t *testing.T, dir, typeName string) map[string]string {
	t.Helper()
	files := token.NewFileSet()
	var parsed []*ast.File
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
	}
	config := types.Config{Error: func(error) {}, IgnoreFuncBodies: true}
	pkg, _ := config.Check(dir, files, parsed, nil) // other packages are not looked at, and so there are errors
	out := map[string]string{}
	for _, name := range pkg.Scope().Names() {
		c, ok := pkg.Scope().Lookup(name).(*types.Const)
		if !ok || c.Val().Kind() != constant.String {
			continue
		}
		named, ok := c.Type().(*types.Named)
		if !ok && typeName == "" || ok && named.Obj().Name() == typeName {
			out[name] = constant.StringVal(c.Val())
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s has no constants of type %q", dir, typeName)
	}
	return out
}

// TestTheExampleIsReal compares the example with what the code writes; -update writes it anew.
func TestTheExampleIsReal(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(eventsDoc)
	if err != nil {
		t.Fatal(err)
	}
	fence := regexp.MustCompile("(?s)```jsonl\n.*?```")
	want := "```jsonl\n" + events(t, exampleEvents()) + "```"
	if *update {
		data = fence.ReplaceAllLiteral(data, []byte(want))
		if err := os.WriteFile(eventsDoc, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := string(fence.Find(data)); got != want {
		t.Errorf("the example is\n%s\nthe code writes\n%s", got, want)
	}
	for _, kind := range constants(t, "../run", "EventType") {
		if !strings.Contains(want, `"type":"`+kind+`"`) {
			t.Errorf("the example has no %s", kind)
		}
	}
}

func events(t *testing.T, all []run.Event) string {
	t.Helper()
	var out bytes.Buffer
	for _, e := range all {
		JSON{Out: &out}.Observe(e)
	}
	return out.String()
}

// exampleEvents are a run with every type of event.
func exampleEvents() []run.Event {
	base, site, corp := sysctl(), timesync(), join()
	for _, d := range []*report.Document{&base, &site, &corp} {
		d.APIVersion = report.APIVersion
		d.Plugin = &report.Plugin{
			Path:    "/usr/libexec/machineadm/machineadm-" + map[string]string{"Sysctl": "sysctl", "Timesync": "timesync", "DomainJoin": "domain-join"}[d.Kind] + "-plugin-" + d.Provider,
			Version: "v0.1.0", SHA256: strings.Repeat("0123456789abcdef", 4),
		}
	}
	s := &script{now: moment(), report: head(report.RunFailed, report.ExitPrecondition, base, site, corp)}
	wait := func(d time.Duration) { s.now = s.now.Add(d) }
	opening := s.report
	s.say(run.Event{Type: run.EventRunStarted, Report: &opening})
	wait(140 * time.Millisecond)
	s.planned(0, "")
	s.events[1].Planned = []run.PlannedChange{{Change: pluginv1.Change{
		ID: changeID(writeFile), Summary: writeFile, Diff: "@@ -1 +1 @@\n-net.ipv4.ip_forward = 0\n+net.ipv4.ip_forward = 1\n",
	}}}
	s.document(1).Warnings = []string{"spec.servers: one server alone cannot be checked"}
	s.planned(1, "")
	s.planned(2, "the clock is not set yet")
	s.started(0)
	s.doing(0, writeFile)
	wait(12 * time.Millisecond)
	s.done(0, writeFile, report.Changed, 12)
	s.finished(0, report.Changed, 14)
	s.started(1)
	s.word(run.EventRetry, 1, "chronyd is being started by another process; trying again in 1s")
	wait(time.Second)
	s.word(run.EventWarning, 1, "spec.servers: ntp1.example.com answers slowly")
	s.finished(1, report.Unchanged, 1003)
	s.started(2)
	s.doing(2, "join corp.example.com")
	s.word(run.EventProgress, 2, "looking for a domain controller")
	wait(31 * time.Second)
	s.running(2, "join corp.example.com", 31000)
	wait(2 * time.Second)
	s.done(2, "join corp.example.com", report.Failed, 33000)
	s.report = with(s.report, 2, report.Error{
		Code: "Precondition", Message: "no domain controller of corp.example.com answers", Field: "spec.domain", File: "node.yaml", Line: 23, Column: 11,
		Hint: "see that the name servers of this machine know the domain", Details: "document-3",
	})
	s.finished(2, report.Failed, 33004)
	s.report.StartedAt, s.report.FinishedAt = moment(), s.now
	s.say(run.Event{Type: run.EventRunFinished, Report: &s.report})
	return s.events
}
