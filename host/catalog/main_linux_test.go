package catalog_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/host/catalog"
)

var update = flag.Bool("update", false, "write the golden files anew")

const sysctl = "machineadm-sysctl-plugin-procfs"

// jobVariable makes the test binary find a plugin as another user.
const jobVariable = "CATALOG_TEST_OPTIONS"

func TestMain(m *testing.M) {
	if text := os.Getenv(jobVariable); text != "" {
		var o catalog.Options
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			panic(err)
		}
		_, _ = fmt.Fprint(os.Stdout, find(o)) // the test misses it otherwise
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func find(o catalog.Options) string {
	c, err := catalog.New(o)
	if err != nil {
		return "new: " + err.Error()
	}
	p, err := c.Find(sysctl)
	if err != nil {
		return "find: " + err.Error()
	}
	file, err := c.Open(p)
	if err != nil {
		return "open: " + err.Error()
	}
	if err := file.Close(); err != nil {
		return "close: " + err.Error()
	}
	return "found: " + p.Path
}

// install puts files below a new directory; a name that ends with / is a directory.
func install(t *testing.T, paths ...string) string {
	t.Helper()
	base := t.TempDir()
	chmod(t, base, 0o700) // under any umask
	for _, p := range paths {
		path := filepath.Join(base, p)
		directory := filepath.Dir(path)
		if strings.HasSuffix(p, "/") {
			directory = path
		}
		if err := os.MkdirAll(directory, 0o755); err != nil { //nolint:gosec // as installed
			t.Fatal(err)
		}
		if directory == path {
			continue
		}
		path = filepath.Join(directory, naming.File(runtime.GOOS, filepath.Base(p)))
		if err := os.WriteFile(path, []byte(p), 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	return base
}

func below(base string, directories ...string) []string {
	var out []string
	for _, d := range directories {
		out = append(out, filepath.Join(base, d))
	}
	return out
}

func chmod(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil { //nolint:gosec // read by everyone
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s", path, got)
	}
}

func newCatalog(t *testing.T, o catalog.Options) *catalog.Catalog {
	t.Helper()
	c, err := catalog.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
