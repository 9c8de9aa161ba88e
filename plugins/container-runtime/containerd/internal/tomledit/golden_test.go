package tomledit

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A case is a directory: input.toml, edits (one a line: set PATH VALUE or delete PATH, the path a JSON list, the value
// JSON), output.toml. The input may be a seed: then edits begins with its name.
func TestGolden(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/golden/*/edits")
	if err != nil || len(cases) < 12 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, file := range cases {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			edits, input := script(t, dir)
			d := parsed(t, input)
			run(t, d, edits)
			golden(t, filepath.Join(dir, "output.toml"), d.Bytes())
			again := parsed(t, d.Bytes())
			run(t, again, edits)
			if !bytes.Equal(again.Bytes(), d.Bytes()) {
				t.Errorf("a second run changed it to\n%s", again.Bytes())
			}
		})
	}
}

// script returns the edits of a case and what they are for.
func script(t *testing.T, dir string) (edits []string, input []byte) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "edits"))
	if err != nil {
		t.Fatal(err)
	}
	edits = strings.Split(strings.TrimSpace(string(text)), "\n")
	file := filepath.Join(dir, "input.toml")
	if seed, ok := strings.CutPrefix(edits[0], "seed "); ok {
		file, edits = filepath.Join("testdata/seeds", seed), edits[1:]
	}
	if input, err = os.ReadFile(file); err != nil {
		t.Fatal(err)
	}
	return edits, input
}

func run(t *testing.T, d *Document, edits []string) {
	t.Helper()
	for _, edit := range edits {
		verb, rest, _ := strings.Cut(edit, " ")
		decoder := json.NewDecoder(strings.NewReader(rest))
		decoder.UseNumber()
		var path []string
		if err := decoder.Decode(&path); err != nil {
			t.Fatalf("%s: %v", edit, err)
		}
		if verb == "delete" {
			if err := d.Delete(path...); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var value any
		if err := decoder.Decode(&value); err != nil {
			t.Fatalf("%s: %v", edit, err)
		}
		if err := d.Set(path, fromJSON(t, value)); err != nil {
			t.Fatal(err)
		}
	}
}

func fromJSON(t *testing.T, value any) any {
	t.Helper()
	switch v := value.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, err := v.Float64()
		if err != nil {
			t.Fatal(err)
		}
		return f
	case []any:
		for i := range v {
			v[i] = fromJSON(t, v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = fromJSON(t, v[key])
		}
	case string, bool:
	default:
		t.Fatalf("%T is no value of TOML", value)
	}
	return value
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if updating(t) {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update writes it)\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}
