package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestRootIsFoundFromBelow(t *testing.T) {
	t.Parallel()
	root, err := Root(".")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, folder, "tools.go")); err != nil {
		t.Error(err)
	}
	if _, err := Root(t.TempDir()); err == nil {
		t.Error("a directory outside every checkout has a root")
	}
}

func TestEveryToolIsPinned(t *testing.T) {
	t.Parallel()
	names, err := Names(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Fatal("there is no tool")
	}
	for _, name := range names {
		mod, err := os.ReadFile(filepath.Join(name, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(mod), "\ntool ") != 1 {
			t.Errorf("%s/go.mod does not name exactly one tool", name)
		}
		for line := range strings.Lines(string(mod)) {
			if pkg, ok := strings.CutPrefix(strings.TrimSpace(line), "tool "); ok && filepath.Base(pkg) != name {
				t.Errorf("%s/go.mod builds %s: the folder bears the binary's name", name, pkg)
			}
		}
	}
}

func TestKeyChangesWithThePins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for _, pins := range [][2]string{{"a", "b"}, {"a", "c"}, {"ab", ""}, {"", "ab"}} {
		write("go.mod", pins[0])
		write("go.sum", pins[1])
		key, err := Key(dir)
		if err != nil {
			t.Fatal(err)
		}
		if seen[key] {
			t.Errorf("the pins %q share a build with others", pins)
		}
		seen[key] = true
	}
}

func TestAnUnknownToolIsNamed(t *testing.T) {
	t.Parallel()
	_, err := Path(t.Context(), t.Output(), ".", "hammer")
	if err == nil || !strings.Contains(err.Error(), `no tool "hammer"`) {
		t.Errorf("error %v", err)
	}
}

func script(t *testing.T, root string, args ...string) (string, error) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the build script wants bash")
	}
	cmd := exec.CommandContext(t.Context(), "./build.sh", args...)
	cmd.Env = append(os.Environ(), "MACHINEADM_ROOT="+root, "VERSION=")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestBinariesAreNamedByTheirFolder(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for path, text := range map[string]string{
		"host/cmd/machineadm/main.go":           "// Command machineadm.\npackage main\n",
		"host/cmd/manager/main.go":              "package main\n",
		"plugins/sysctl/procfs/main.go":         "package main\n",
		"plugins/sysctl/internal/rule/rule.go":  "package rule\n",
		"plugins/domain-join/ad/plan.go":        "package main\n",
		"plugins/timesync/unfinished/x_test.go": "package main\n",
		"plugins/remote-config/s3/main.go":      "package main\n",
		"plugins/encrypted-config/file/main.go": "package main\n",
		"contract/conformance/cmd/kit/main.go":  "package main\n",
	} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := script(t, root, "names")
	if err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	want := `machineadm ./host/cmd/machineadm
machineadm-manager ./host/cmd/manager
machineadm-kit ./contract/conformance/cmd/kit
machineadm-domain-join-plugin-ad ./plugins/domain-join/ad
machineadm-plugin-encryption-provider-file ./plugins/encrypted-config/file
machineadm-remote-configuration-provider-s3 ./plugins/remote-config/s3
machineadm-sysctl-plugin-procfs ./plugins/sysctl/procfs
`
	if got != want {
		t.Errorf("names:\n%s\nwant:\n%s", got, want)
	}
	if got, err := script(t, root, "version"); err != nil || got != "devel\n" {
		t.Errorf("outside git the version is %q, %v", got, err)
	}
}

func TestABinaryThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, c := range []struct {
		name string
		size int64
		ok   bool
	}{
		{"machineadm", 20 * mib, true},
		{"machineadm", 20*mib + 1, false},
		{"machineadm.exe", 20*mib + 1, false},
		{"machineadm-sysctl-plugin-procfs", 16 * mib, true},
		{"machineadm-sysctl-plugin-procfs", 16*mib + 1, false},
		{"machineadm-plugin-encryption-provider-file.exe", 16*mib + 1, false},
		{"machineadm-remote-configuration-provider-s3", 16*mib + 1, false},
		{"machineadm-manager", 60 * mib, true},
	} {
		file := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file, c.size); err != nil {
			t.Fatal(err)
		}
		if out, err := script(t, ".", "judge", file); (err == nil) != c.ok {
			t.Errorf("%s of %d bytes: %v\n%s", c.name, c.size, err, out)
		}
	}
}
