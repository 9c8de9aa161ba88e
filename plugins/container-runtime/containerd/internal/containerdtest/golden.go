package containerdtest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

// Golden compares with a file of the plugin's testdata, or writes it with -update.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if _, err := os.Stat("testdata/cases"); err != nil {
		path = filepath.Join("../..", path)
	}
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s", name, got)
	}
}

var _ = flag.Bool("update", false, "write the golden files")
