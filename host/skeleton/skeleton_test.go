package skeleton

import (
	"errors"
	"flag"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestFiles(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"kind":           {Kind: "LoginBanner", Provider: "issue", Version: "devel+6cde31d"},
		"kind-of-vendor": {Kind: "True", Provider: "3com", APIVersion: "acme.example/v1beta2", Module: "git.acme.example/on", Version: "v1.2.3"},
		"own":            {Kind: v1alpha1.KindSysctl, Provider: "dropin", Version: "v1.2.3"},
		"source":         {Kind: v1alpha1.KindRemoteConfig, Provider: "shelf", Version: "v1.2.3"},
		"keyprovider":    {Kind: v1alpha1.KindEncryptedConfig, Provider: "keyfile", Version: "v1.2.3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := o.Check(); err != nil {
				t.Fatal(err)
			}
			files, err := o.Files()
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			for _, f := range files {
				fmt.Fprintf(&out, "-- %s --\n%s", f.Name, f.Data)
				if strings.HasSuffix(f.Name, ".go") {
					wellFormed(t, f)
				}
			}
			golden(t, name+".golden", out.String())
		})
	}
}

// wellFormed checks that gofmt accepts a file.
func wellFormed(t *testing.T, f File) {
	t.Helper()
	formatted, err := format.Source(f.Data)
	if err != nil {
		t.Errorf("%s: %v", f.Name, err)
	} else if string(formatted) != string(f.Data) {
		t.Errorf("%s is not formatted", f.Name)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil { //nolint:gosec // read by everyone
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it anew); got:\n%s", path, got)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options Options
		says    []string // nothing: it is in order
	}{
		"a new kind":                 {options: Options{Kind: "Motd", Provider: "file"}},
		"a new kind of a vendor":     {options: Options{Kind: "Motd", Provider: "file", APIVersion: "acme.example/v1alpha2", Module: "acme.example/a/b-c_d"}},
		"a kind of ours":             {options: Options{Kind: "Sysctl", Provider: "file"}},
		"nothing":                    {says: []string{"KIND must be CamelCase", "--provider is missing"}},
		"a kind in small letters":    {options: Options{Kind: "motd", Provider: "file"}, says: []string{"KIND must be CamelCase"}},
		"a path":                     {options: Options{Kind: "../Motd", Provider: "../file"}, says: []string{"KIND must be", "--provider must consist of"}},
		"a source":                   {options: Options{Kind: "RemoteConfig", Provider: "x"}},
		"a key provider":             {options: Options{Kind: "EncryptedConfig", Provider: "x"}},
		"a kind of sources":          {options: Options{Kind: "ReportTarget", Provider: "x"}, says: []string{"ReportTarget is served by the plugins of RemoteConfig"}},
		"a group for a kind of ours": {options: Options{Kind: "Sysctl", Provider: "x", APIVersion: "acme.example/v1"}, says: []string{"leave out --group"}},
		"our group":                  {options: Options{Kind: "Motd", Provider: "x", APIVersion: v1alpha1.APIVersion}, says: []string{"is reserved for machineadm"}},
		"no version":                 {options: Options{Kind: "Motd", Provider: "x", APIVersion: "acme.example"}, says: []string{"--group takes"}},
		"no domain":                  {options: Options{Kind: "Motd", Provider: "x", APIVersion: "acme/v1"}, says: []string{"--group takes"}},
		"a version that is none":     {options: Options{Kind: "Motd", Provider: "x", APIVersion: "acme.example/latest"}, says: []string{"--group takes"}},
		"two slashes":                {options: Options{Kind: "Motd", Provider: "x", APIVersion: "acme.example/x/v1"}, says: []string{"--group takes"}},
		"our module":                 {options: Options{Kind: "Motd", Provider: "x", Module: ours + "/motd"}, says: []string{"--module takes"}},
		"a module that ends a line":  {options: Options{Kind: "Motd", Provider: "x", Module: "a\nreplace"}, says: []string{"--module takes"}},
		"a module that climbs":       {options: Options{Kind: "Motd", Provider: "x", Module: "a/../b"}, says: []string{"--module takes"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.options.Check()
			if (err == nil) != (len(c.says) == 0) {
				t.Fatalf("error %v, want %q", err, c.says)
			}
			for _, want := range c.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}

// TestGoVersionIsThatOfTheModule: the Go version that builds machineadm builds a skeleton.
func TestGoVersionIsThatOfTheModule(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`(?m)^go (\S+)$`).FindSubmatch(data); found == nil || string(found[1]) != goVersion {
		t.Errorf("go.mod has %s, a skeleton %s", found, goVersion)
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	files := []File{{Name: "a/b/c", Data: []byte("deep")}, {Name: "d", Data: []byte("flat")}}
	t.Run("a new directory", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(t.TempDir(), "new")
		if err := Write(dir, files); err != nil {
			t.Fatal(err)
		}
		if got := tree(t, dir); !slices.Equal(got, []string{"a/b/c deep", "d flat"}) {
			t.Errorf("%q", got)
		}
		var place *PathError
		if err := Write(dir, files[1:]); !errors.As(err, &place) || place.Path != dir {
			t.Errorf("again: %v", err)
		}
	})
	t.Run("path exists", func(t *testing.T) {
		t.Parallel()
		parent := t.TempDir()
		for name, lay := range map[string]func(string) error{
			"file":          func(p string) error { return os.WriteFile(p, []byte("mine"), 0o600) },
			"directory":     func(p string) error { return os.Mkdir(p, 0o700) },
			"dangling link": func(p string) error { return os.Symlink("nowhere", p) },
		} {
			path := filepath.Join(parent, name)
			if err := lay(path); err != nil {
				t.Fatal(err)
			}
			before := tree(t, parent)
			var place *PathError
			if err := Write(path, files); !errors.As(err, &place) || place.Path != path {
				t.Errorf("%s: %v", name, err)
			}
			if after := tree(t, parent); !slices.Equal(before, after) {
				t.Errorf("%s: %q became %q", name, before, after)
			}
		}
	})
	t.Run("no parent", func(t *testing.T) {
		t.Parallel()
		parent := t.TempDir()
		if err := os.WriteFile(filepath.Join(parent, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, above := range []string{"none", "file"} {
			var place *PathError
			if err := Write(filepath.Join(parent, above, "new"), files); !errors.As(err, &place) || place.Path != filepath.Join(parent, above) {
				t.Errorf("%s: %v", above, err)
			}
		}
	})
	t.Run("no permission", func(t *testing.T) {
		t.Parallel()
		require.Linux(t)
		var place *PathError
		if err := Write("/proc/new", files); !errors.As(err, &place) || place.Path != "/proc" {
			t.Errorf("%v", err)
		}
	})
	t.Run("half-way", func(t *testing.T) {
		t.Parallel()
		parent := t.TempDir()
		// A file where a directory is needed: the second write fails, on every machine and for every user.
		broken := []File{{Name: "a", Data: []byte("x")}, {Name: "a/b", Data: []byte("y")}}
		if err := Write(filepath.Join(parent, "new"), broken); err == nil {
			t.Error("no error")
		}
		if got := tree(t, parent); len(got) > 0 {
			t.Errorf("left: %q", got)
		}
	})
}

// tree lists what is below a directory, with the contents of files.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && name == dir {
			return err
		}
		below, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		below = filepath.ToSlash(below)
		if d.Type().IsRegular() {
			data, err := os.ReadFile(name)
			out = append(out, below+" "+string(data))
			return err
		}
		if d.Type()&fs.ModeSymlink != 0 {
			out = append(out, below+" ->")
		} else if entries, err := os.ReadDir(name); err != nil || len(entries) == 0 {
			out = append(out, below+"/")
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
