package testcase

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/conformance/internal/casetest"
)

// below turns an absolute path into a place of this machine.
func below(path string) string { return strings.TrimPrefix(filepath.ToSlash(path), "/") }

// TestMachineIsWatched: a change of a watched place of this machine is reported, a change elsewhere is not.
func TestMachineIsWatched(t *testing.T) {
	t.Parallel()
	long := time.Unix(1, 0)
	for name, tt := range map[string]struct {
		change func(dir string) error
		want   []string // DIR is replaced by the directory
	}{
		"nothing":                            {func(string) error { return nil }, nil},
		"written anew":                       {func(dir string) error { return os.WriteFile(filepath.Join(dir, "d/a"), []byte("2"), 0o644) }, []string{"DIR/d/a: was written or touched: its times are others"}},
		"longer":                             {func(dir string) error { return os.WriteFile(filepath.Join(dir, "d/a"), []byte("22"), 0o644) }, []string{"DIR/d/a: has 2 bytes instead of 1"}},
		"replaced":                           {func(dir string) error { return replace(filepath.Join(dir, "d/a")) }, []string{"DIR/d/a: was replaced"}},
		"times set back":                     {func(dir string) error { return os.Chtimes(filepath.Join(dir, "d/a"), long, long) }, []string{"DIR/d/a: was written or touched: its times are others"}},
		"another mode":                       {func(dir string) error { return os.Chmod(filepath.Join(dir, "d/a"), 0o600) }, []string{"DIR/d/a: has the mode -rw------- instead of -rw-r--r--"}},
		"mode of a parent":                   {func(dir string) error { return os.Chmod(dir, 0o700) }, []string{"DIR: has the mode -rwx------ instead of -rwxr-xr-x"}},
		"removed":                            {func(dir string) error { return os.Remove(filepath.Join(dir, "d/a")) }, []string{"DIR/d/a is gone"}},
		"made":                               {func(dir string) error { return os.Mkdir(filepath.Join(dir, "none"), 0o755) }, []string{"DIR/none is new"}},
		"made and unnamed":                   {func(dir string) error { return os.Mkdir(filepath.Join(dir, "d/x"), 0o755) }, []string{"DIR/d/x is new"}},
		"gone and unnamed":                   {func(dir string) error { return os.Remove(filepath.Join(dir, "d/b")) }, []string{"DIR/d/b is gone"}},
		"in a directory that nothing names":  {func(dir string) error { return os.Mkdir(filepath.Join(dir, "e/x"), 0o755) }, nil},
		"what the link of the case leads to": {func(dir string) error { return os.WriteFile(filepath.Join(dir, "e/f"), []byte("2"), 0o644) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			casetest.Put(t, dir, map[string]string{"d/a": "1", "d/b": "1", "e/f": "1", "link": "-> e/f"})
			if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Join(dir, "d/a"), 0o644)); err != nil {
				t.Fatal(err)
			}
			var places []string
			for _, name := range []string{".", "d", "d/a", "none", "none/a", "d/a/b", "link"} {
				places = append(places, below(filepath.Join(dir, name)))
			}
			before := Observe(places)
			if err := tt.change(dir); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, line := range before.Differences(Observe(places)) {
				got = append(got, strings.ReplaceAll(line, filepath.ToSlash(dir), "DIR"))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func replace(name string) error {
	if err := os.WriteFile(name+".new", []byte("1"), 0o644); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// TestNoFalseAlarm by what others do all the time.
func TestNoFalseAlarm(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shared := filepath.Join(dir, "shared")
	if err := errors.Join(os.Mkdir(shared, 0o700), os.Chmod(shared, 0o777|os.ModeSticky)); err != nil {
		t.Fatal(err)
	}
	places := []string{".", "proc", "proc/self", "proc/uptime", "sys/kernel", "dev", "dev/null", "run", below(os.TempDir()), below(dir), below(shared)}
	before := Observe(places)
	casetest.Put(t, dir, map[string]string{"temporary": "", "shared/new": ""})
	if err := os.Remove(filepath.Join(dir, "temporary")); err != nil {
		t.Fatal(err)
	}
	scratch, err := os.MkdirTemp("", "alarm-") //nolint:usetesting // a new name right there is what is tried
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(scratch) })
	if null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil || null.Close() != nil {
		t.Fatal(err)
	}
	if got := before.Differences(Observe(places)); len(got) > 0 {
		t.Errorf("alarm: %q", got)
	}
}

func TestPlacesOfACase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	casetest.Put(t, dir, map[string]string{"root/etc/hosts": "", "expect/opt/x/y": "", "expect/etc/link": "-> /nowhere"})
	got, err := (&Case{Dir: dir}).Places()
	if want := []string{".", "etc", "etc/hosts", "etc/link", "opt", "opt/x", "opt/x/y"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if got, err := (&Case{Dir: t.TempDir()}).Places(); err != nil || !slices.Equal(got, []string{"."}) {
		t.Errorf("without a tree: %q, %v", got, err)
	}
}
