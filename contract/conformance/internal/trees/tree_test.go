package trees

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/conformance/internal/casetest"
)

func TestDifferences(t *testing.T) {
	t.Parallel()
	everything := Aspects{Modes: true, Owners: true, Times: true}
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
			casetest.Put(t, dir, map[string]string{"d/a": "1", "link": "-> /a"})
			if err := os.Chmod(filepath.Join(dir, "d/a"), 0o644); err != nil {
				t.Fatal(err)
			}
			before, err := ReadTree(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := tt.change(dir); err != nil {
				t.Fatal(err)
			}
			after, err := ReadTree(dir)
			if err != nil {
				t.Fatal(err)
			}
			if got := Differences(before, after, everything); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestCopyIsNormal: the modes of a checkout have no effect.
func TestCopyIsNormal(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	casetest.Put(t, from, map[string]string{"d/file": "x ${canary}", "d/program": "#!", "d/link": "-> /dev/null"})
	for name, mode := range map[string]os.FileMode{"d/file": 0o600, "d/program": 0o700, "d": 0o700} {
		if err := os.Chmod(filepath.Join(from, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := CopyTree(from, to, true, func(data []byte) []byte { return bytes.ReplaceAll(data, []byte("${canary}"), []byte("word")) }); err != nil {
		t.Fatal(err)
	}
	got, err := ReadTree(to)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"d": "drwxr-xr-x", "d/file": "-rw-r--r--", "d/program": "-rwxr-xr-x", "d/link": "Lrwxrwxrwx",
	} {
		if got[name].Mode.String() != want {
			t.Errorf("%s has %s, want %s", name, got[name].Mode, want)
		}
	}
	if data, err := os.ReadFile(filepath.Join(to, "d/file")); err != nil || string(data) != "x word" {
		t.Errorf("%q, %v", data, err)
	}
}
