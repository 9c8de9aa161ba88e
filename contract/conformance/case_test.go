package conformance

import (
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// put writes files below dir; content "-> X" makes a link.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if to, link := strings.CutPrefix(content, "-> "); link {
			err = os.Symlink(to, path)
		} else {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

const config = "apiVersion: example.com/v1\nkind: X\nmetadata: {name: a}\nspec: {provider: p, password: {value: %s}}\n"

func TestLoadCases(t *testing.T) {
	t.Parallel()
	plain, secret := strings.ReplaceAll(config, "%s", "x"), strings.ReplaceAll(config, "%s", "${canary}")
	for name, tt := range map[string]struct {
		files map[string]string
		says  string // "" is a valid case
	}{
		"only a document": {map[string]string{"config.yaml": plain}, ""},
		"everything": {map[string]string{
			"config.yaml": secret, "README.md": "#", "root/etc/a": "", "expect/etc/b": "",
			"expect.yaml": "# comment\nchanges: [a]\nreboot: AfterRun\nsecrets:\n  - spec.password\nmodes: {etc/b: \"0600\"}\n",
		}, ""},
		"errors":                 {map[string]string{"config.yaml": plain, "expect.yaml": "errors:\n- {code: Precondition}\n"}, ""},
		"an empty expectation":   {map[string]string{"config.yaml": plain, "expect.yaml": "changes: []\n"}, ""},
		"no document":            {map[string]string{"expect.yaml": "changes: []\n"}, "config.yaml"},
		"two documents":          {map[string]string{"config.yaml": plain + "---\n" + strings.Replace(plain, "name: a", "name: b", 1)}, "has 2 documents"},
		"a faulty document":      {map[string]string{"config.yaml": "kind: X\n"}, "a host would refuse"},
		"a foreign file":         {map[string]string{"config.yaml": plain, "expects/x": ""}, "is no file of a case"},
		"a secret without one":   {map[string]string{"config.yaml": plain, "expect.yaml": "secrets: [spec.password]\n"}, "${canary} is in []"},
		"a canary and no secret": {map[string]string{"config.yaml": secret}, `is in ["spec.password.value"]`},
		"an unknown field":       {map[string]string{"config.yaml": plain, "expect.yaml": "# a\nchange: [a]\n"}, "change: unknown field"},
		"a syntax error":         {map[string]string{"config.yaml": plain, "expect.yaml": "# a\nchanges: [a\n"}, "expect.yaml:"},
		"an unknown code":        {map[string]string{"config.yaml": plain, "expect.yaml": "errors: [{code: Internal}]\n"}, "errors[0].code"},
		"an unknown reboot":      {map[string]string{"config.yaml": plain, "expect.yaml": "reboot: Now\n"}, "reboot: must be"},
		"a mode in decimal":      {map[string]string{"config.yaml": plain, "expect.yaml": "modes: {a: \"999\"}\n"}, "modes.a"},
		"refused with changes": {map[string]string{
			"config.yaml": plain, "expect.yaml": "errors: [{code: Retry}]\nchanges: [a]\n",
		}, "changes: a refused document has none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			put(t, filepath.Join(dir, "one"), tt.files)
			cases, err := LoadCases(dir)
			switch {
			case tt.says == "" && (err != nil || len(cases) != 1 || cases[0].Name != "one"):
				t.Errorf("%v, %v", cases, err)
			case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)):
				t.Errorf("error %v, want one with %q", err, tt.says)
			}
		})
	}
	if _, err := LoadCases(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no case") {
		t.Errorf("no cases: %v", err)
	}
}

func TestTraces(t *testing.T) {
	t.Parallel()
	word := newCanary()
	found := tracesOf(word)
	for _, around := range []string{"", "a", "ab", "abc", "{\"password\": {\"value\": \""} {
		text := around + word + around
		for name, shown := range map[string]string{
			"plain": text, "hexadecimal": hex.EncodeToString([]byte(text)),
			"base64":          base64.StdEncoding.EncodeToString([]byte(text)),
			"base64 for URLs": base64.RawURLEncoding.EncodeToString([]byte(text)),
		} {
			if !found.in([]byte("x" + shown)) {
				t.Errorf("%s after %q is not found", name, around)
			}
		}
	}
	if found.in([]byte(newCanary())) || found.in([]byte(base64.StdEncoding.EncodeToString([]byte(newCanary())))) {
		t.Error("another word is taken for this one")
	}
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	everything := aspects{modes: true, owners: true, times: true}
	for name, tt := range map[string]struct {
		change func(dir string) error
		want   []string
	}{
		"nothing": {func(string) error { return nil }, nil},
		"content": {func(dir string) error { return os.WriteFile(filepath.Join(dir, "d/a"), []byte("longer"), 0o600) }, []string{"d/a: has other content (6 bytes instead of 1)"}},
		"mode":    {func(dir string) error { return os.Chmod(filepath.Join(dir, "d/a"), 0o600) }, []string{"d/a: has the mode -rw------- instead of -rw-r--r--"}},
		"removed": {func(dir string) error { return os.Remove(filepath.Join(dir, "d/a")) }, []string{"d: was touched: its times are others", "d/a is missing"}},
		"added":   {func(dir string) error { return os.Mkdir(filepath.Join(dir, "d/new"), 0o755) }, []string{"d: was touched: its times are others", "d/new should not be there"}},
		"times":   {func(dir string) error { return os.Chtimes(filepath.Join(dir, "d/a"), time.Unix(1, 0), time.Unix(1, 0)) }, []string{"d/a: was touched: its times are others"}},
		"link": {func(dir string) error {
			link := filepath.Join(dir, "link")
			if err := os.Remove(link); err != nil {
				return err
			}
			return os.Symlink("/b", link)
		}, []string{".: was touched: its times are others", `link: leads to "/b" instead of "/a"`}},
		"kind": {func(dir string) error {
			link := filepath.Join(dir, "link")
			if err := os.Remove(link); err != nil {
				return err
			}
			return os.Mkdir(link, 0o755)
		}, []string{".: was touched: its times are others", "link: is a directory instead of a link"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			put(t, dir, map[string]string{"d/a": "1", "link": "-> /a"})
			if err := os.Chmod(filepath.Join(dir, "d/a"), 0o644); err != nil {
				t.Fatal(err)
			}
			before, err := readTree(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := tt.change(dir); err != nil {
				t.Fatal(err)
			}
			after, err := readTree(dir)
			if err != nil {
				t.Fatal(err)
			}
			if got := differences(before, after, everything); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestCopyIsNormal: the modes of a checkout have no effect.
func TestCopyIsNormal(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	put(t, from, map[string]string{"d/file": "x ${canary}", "d/program": "#!", "d/link": "-> /dev/null"})
	for name, mode := range map[string]os.FileMode{"d/file": 0o600, "d/program": 0o700, "d": 0o700} {
		if err := os.Chmod(filepath.Join(from, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyTree(from, to, true, func(data []byte) []byte { return fill(data, "word") }); err != nil {
		t.Fatal(err)
	}
	got, err := readTree(to)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"d": "drwxr-xr-x", "d/file": "-rw-r--r--", "d/program": "-rwxr-xr-x", "d/link": "Lrwxrwxrwx",
	} {
		if got[name].mode.String() != want {
			t.Errorf("%s has %s, want %s", name, got[name].mode, want)
		}
	}
	if data, err := os.ReadFile(filepath.Join(to, "d/file")); err != nil || string(data) != "x word" {
		t.Errorf("%q, %v", data, err)
	}
}

// TestChecksNameClauses that SPEC.md has.
func TestChecksNameClauses(t *testing.T) {
	t.Parallel()
	spec, err := os.ReadFile("../SPEC.md")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, check := range Checks() {
		if names[check.Name] || check.Says == "" || check.Clause == "" || check.run == nil {
			t.Errorf("%s: says %q, clause %q", check.Name, check.Says, check.Clause)
		}
		names[check.Name] = true
		for clause := range strings.SplitSeq(check.Clause, ", ") {
			if !strings.Contains(string(spec), "**"+clause+"**") {
				t.Errorf("%s names clause %s, which SPEC.md does not have", check.Name, clause)
			}
		}
	}
}

// TestDocumentationListsTheChecks compares doc.go with the list of checks.
func TestDocumentationListsTheChecks(t *testing.T) {
	t.Parallel()
	var want strings.Builder
	want.WriteString("// The checks, in their order, with the clauses of SPEC.md that they hold a plugin to:\n//\n")
	for _, check := range Checks() {
		line := "//   - " + check.Name + ":"
		for _, word := range strings.Fields(check.Says + " [" + check.Clause + "]") {
			if len(line)+1+len(word) > 120 {
				want.WriteString(line + "\n")
				line = "//    "
			}
			line += " " + word
		}
		want.WriteString(line + "\n")
	}
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), want.String()) {
		t.Errorf("doc.go must have exactly this:\n%s", want.String())
	}
}
