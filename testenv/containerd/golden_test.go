package containerd_test

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/machineadm/machineadm/testenv/containerd"
)

var update = flag.Bool("update", false, "write what the real daemons say into testdata")

// golden compares a text with the file below testdata, or renews the file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file, got := filepath.Join("testdata", name), neutral(got)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s (renew it with -update if the change is understood):\n%s\nwant:\n%s", file, got, want)
	}
}

// sections is a file of named texts: each begins with a line "-- NAME --".
type sections struct {
	name string
	mu   sync.Mutex
	want map[string]string
	got  map[string]string
}

func readSections(t *testing.T, name string) *sections {
	t.Helper()
	s := &sections{name: name, want: map[string]string{}, got: map[string]string{}}
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil && !*update {
		t.Fatal(err)
	}
	at := ""
	for line := range strings.Lines(string(data)) {
		if heading, ok := strings.CutPrefix(line, "-- "); ok {
			at = strings.TrimSuffix(heading, " --\n")
		} else {
			s.want[at] += line
		}
	}
	if *update {
		t.Cleanup(func() { s.write(t) })
	}
	return s
}

func (s *sections) check(t *testing.T, section, got string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	got = neutral(got)
	if !strings.HasSuffix(got, "\n") {
		got += "\n"
	}
	s.got[section] = got
	if want, ok := s.want[section]; !*update && (!ok || got != want) {
		t.Errorf("testdata/%s, %s (renew it with -update if the change is understood):\n%s\nwant:\n%s", s.name, section, got, want)
	}
}

// write keeps the sections that this run did not produce.
func (s *sections) write(t *testing.T) {
	t.Helper()
	maps.Copy(s.want, s.got)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.want)) {
		text.WriteString("-- " + name + " --\n" + s.want[name])
	}
	if err := os.WriteFile(filepath.Join("testdata", s.name), []byte(text.String()), 0o644); err != nil {
		t.Error(err)
	}
}

// neutral is a text of containerd without the registry that it takes the sandbox image from by default: no file here names
// a real one.
func neutral(text string) string {
	return strings.ReplaceAll(text, "registry."+"k8s.io/", "registry.test/")
}

// said is a log of containerd without the parts that differ in each run.
func said(text string) string {
	for pattern, to := range map[string]string{
		`time="[^"]*" `:        "",
		` t=("[^"]*"|\S+)`:     "",
		`127\.0\.0\.1:\d{5}\b`: "127.0.0.1:PORT",
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, to)
	}
	// Of a panic the first line, not the stack.
	text, _, _ = strings.Cut(text, "\ngoroutine ")
	return strings.TrimRight(text, "\n")
}

// defaults is what the version's `config default` prints, as it is kept (see neutral); TestContainerd holds it against the
// real one.
func defaults(t *testing.T, v containerd.Version) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "default-"+string(v)+".toml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
