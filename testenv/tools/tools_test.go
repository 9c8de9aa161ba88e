package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/machineadm/machineadm/internal/require"
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
	mods, err := filepath.Glob("*/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if len(mods) == 0 {
		t.Fatal("there is no tool")
	}
	for _, mod := range mods {
		name := filepath.Dir(mod)
		switch all, err := programs(name); {
		case err != nil:
			t.Error(err)
		case len(all) == 0:
			t.Errorf("%s names no tool", mod)
		case len(all) == 1 && all[0] != name && !strings.HasPrefix(name, all[0]+"-"):
			t.Errorf("%s builds %s: the folder bears the binary's name", mod, all[0])
		case len(all) > 1 && slices.Contains(all, name):
			t.Errorf("%s builds %q: the folder of several has another name", mod, all)
		}
		if _, err := os.Stat(filepath.Join(name, "go.sum")); err != nil {
			t.Error(err)
		}
	}
}

// Every tool has one tier, so that `tool -tier` builds each of them for some tier.
func TestEveryToolHasATier(t *testing.T) {
	t.Parallel()
	all, err := Names(".")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, tier := range tiers() {
		names, err := OfTiers(".", tier)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, names...)
	}
	slices.Sort(found)
	if !slices.Equal(found, all) {
		t.Errorf("tools with a tier: %q; all tools: %q; the file %s has one of %q", found, all, tierFile, tiers())
	}
	if _, err := OfTiers(".", "systems"); err == nil || !strings.Contains(err.Error(), `no tier "systems"`) {
		t.Errorf("error %v", err)
	}
}

// A program must not tell another version than the one that is built.
func TestStampsAreThePins(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*/" + linkerFlags)
	if err != nil || len(files) == 0 {
		t.Fatalf("no stamp is found (%v)", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		mod, err := os.ReadFile(filepath.Join(filepath.Dir(file), "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for stamp := range strings.SplitSeq(strings.TrimSpace(string(text)), "-X ") {
			variable, version, ok := strings.Cut(strings.TrimSpace(stamp), "=")
			if !ok {
				continue
			}
			pinned := false
			for line := range strings.Lines(string(mod)) {
				words := append(strings.Fields(line), "", "")
				// Kubernetes stamps a module of its own, which has the version v0.
				owner := strings.Replace(words[0], "k8s.io/kubernetes", "k8s.io", 1)
				pinned = pinned || strings.HasPrefix(variable, owner+"/") && words[1] == version
			}
			if !pinned {
				t.Errorf("%s stamps %s, which go.mod does not pin", file, stamp)
			}
		}
	}
}

// The compiler reuses a package of another module only if all that it imports has the same versions. The controller and these tools
// share more than a thousand packages, which take minutes to compile.
func TestLibrariesOfTheControllerAreCompiledOnce(t *testing.T) {
	t.Parallel()
	pins := func(dir string) map[string]string {
		t.Helper()
		name := filepath.Join(dir, "go.mod")
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		mod, err := modfile.Parse(name, data, nil)
		if err != nil {
			t.Fatal(err)
		}
		versions := map[string]string{}
		for _, r := range mod.Require {
			versions[r.Mod.Path] = r.Mod.Version
		}
		for _, r := range mod.Replace {
			if versions[r.Old.Path] != "" && r.New.Path == r.Old.Path && versions[r.Old.Path] != r.New.Version {
				versions[r.Old.Path] += " => " + r.New.Version
			}
		}
		return versions
	}
	root := pins("../..")
	delete(root, "k8s.io/cri-api") // of 1.37, for the newest kubelet; here the kubelet alone imports it
	for _, tool := range []string{"kubernetes-1.36", "kustomize"} {
		for module, version := range pins(tool) {
			if of, ok := root[module]; ok && of != version {
				t.Errorf("%s/go.mod has %s %s, the root %s: go -C testenv/tools/%[1]s get %[2]s@%[4]s", tool, module, version, of)
			}
		}
	}
}

func TestAFolderCanBuildSeveral(t *testing.T) {
	t.Parallel()
	names, err := Names(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"buf", "containerd-2.3/containerd", "containerd-2.3/ctr", "kubeadm-1.30/kubeadm", "kubernetes-1.36/kubeadm", "kubernetes-1.36/bootstrap-kubeadm"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not among %q", name, names)
		}
	}
	if slices.Contains(names, "containerd-2.3") {
		t.Errorf("a folder of several programs is a tool: %q", names)
	}
	for _, name := range []string{"containerd-2.3", "containerd-2.3/hammer", "buf/buf", "kubeadm-1.30"} {
		if _, err := Path(t.Context(), t.Output(), ".", name); err == nil || !strings.Contains(err.Error(), "builds [") {
			t.Errorf("%s: error %v, want one that says what there is", name, err)
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
	if err := os.Mkdir(filepath.Join(dir, "command"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i, pins := range [][2]string{{"a", "b"}, {"a", "c"}, {"ab", ""}, {"", "ab"}, {"a", "b"}, {"a", "b"}, {"a", "b"}, {"a", "b"}} {
		write("go.mod", pins[0])
		write("go.sum", pins[1])
		if i > 3 {
			write([]string{"ldflags", "main.go", "command/main.go", "package-lock.json"}[i-4], "b") // beside the same pins
		}
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

// Main packages of one name do not overwrite each other.
func TestEachProgramHasAName(t *testing.T) {
	t.Parallel()
	source, dir := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module example.test/m\n\ngo 1.26\n\ntool (\n\texample.test/m/a/x\n\texample.test/m/b/x\n\texample.test/m/cmd/x\n\texample.test/m/y\n\texample.test/m/z\n)\n",
		"a/x/main.go": "package main\n\nfunc main() {}\n", "b/x/main.go": "package main\n\nfunc main() {}\n", "cmd/x/main.go": "package main\n\nfunc main() {}\n",
		"y/main.go": "package main\n\nfunc main() {}\n", "z/main.go": "package main\n\nfunc main() {}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(source, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(source, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"a-x", "b-x", "x", "y", "z"}
	if all, err := programs(source); err != nil || !slices.Equal(all, want) {
		t.Errorf("programs %q, %v; want %q", all, err, want)
	}
	if err := build(t.Context(), t.Output(), source, dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range want {
		if _, err := os.Stat(executable(filepath.Join(dir, name))); err != nil {
			t.Error(err)
		}
	}
}

// npm has the version that is compiled without npm, and the lock file has the digest of all that npm installs.
func TestPackagesOfNPMAreThePins(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*/" + lockFile)
	if err != nil || len(files) == 0 {
		t.Fatalf("no lock file is found (%v)", err)
	}
	for _, file := range files {
		var lock struct {
			Packages map[string]struct{ Version, Integrity string }
		}
		if data, err := os.ReadFile(file); err != nil || json.Unmarshal(data, &lock) != nil || len(lock.Packages) < 2 {
			t.Fatalf("%s: %v, %d packages", file, err, len(lock.Packages))
		}
		mod, err := os.ReadFile(filepath.Join(filepath.Dir(file), "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for name, p := range lock.Packages {
			if name == "" { // the folder itself
				continue
			}
			owner := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(name)), "node_modules/@") // bufbuild
			tool := filepath.Dir(file)
			if !strings.Contains(string(mod), "\tgithub.com/"+owner+"/"+tool+" v"+p.Version+" ") || p.Integrity == "" {
				t.Errorf("%s: %s %s has the digest %q; go.mod pins another version, or there is no digest", file, name, p.Version, p.Integrity)
			}
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(file), npmConfig)); err != nil {
			t.Error(err)
		}
	}
}

// Without npm, or with an npm that fails, the program is compiled.
func TestWithoutNPMAToolIsCompiled(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("npm is not a script of the shell there")
	}
	source, cache, bin := t.TempDir(), t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.test/little\n\ngo 1.26\n\ntool example.test/little\n", "main.go": "package main\n\nfunc main() {}\n",
		packageFile: "{}", lockFile: "{}", npmConfig: "",
	} {
		if err := os.WriteFile(filepath.Join(source, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(cache, "little")
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	for _, c := range []struct{ npm, log, content string }{
		{"echo no packages here; exit 1", "no packages here", "\x7fELF"},
		{"true", "0 packages have the program little", "\x7fELF"},
		{"mkdir -p node_modules/@owner/little-os/bin; echo theirs >node_modules/@owner/little-os/bin/little", "", "theirs\n"},
	} {
		if err := require.WriteProgram(filepath.Join(bin, "npm"), []byte("#!/bin/sh\n"+c.npm+"\n")); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		if err := build(t.Context(), &log, source, cache); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(program)
		if err != nil || runtime.GOOS == "linux" && !bytes.HasPrefix(data, []byte(c.content)) {
			t.Errorf("npm: %s: %v, %.8q", c.npm, err, data)
		}
		if strings.Contains(log.String(), "compiling") != (c.log != "") || !strings.Contains(log.String(), c.log) {
			t.Errorf("npm: %s: log %s", c.npm, &log)
		}
	}
}

// Several tests ask for a tool that the cache does not hold yet: one of them builds it, the others wait.
func TestOneBuildsTheOthersWait(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the tool cache has no lock on this system: no process waits")
	}
	source, cache := t.TempDir(), filepath.Join(t.TempDir(), "key")
	for name, text := range map[string]string{
		"go.mod": "module example.test/little\n\ngo 1.26\n\ntool example.test/little\n", "main.go": "package main\n\nfunc main() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(source, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer // of the builds: two would be a race, and two lines
	failed := make(chan error)
	for range 4 {
		go func() { failed <- buildOnce(t.Context(), &log, source, cache, filepath.Join(cache, "little")) }()
	}
	for range 4 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if strings.Count(log.String(), "building the tool") != 1 {
		t.Errorf("built more than once, or not at all:\n%s", &log)
	}

	held, err := lock(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lock(ctx, cache); !errors.Is(err, context.Canceled) {
		t.Errorf("two hold the cache: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Error(err)
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
		{"machineadm-sysctl-plugin-procfs", 14 * mib, true},
		{"machineadm-sysctl-plugin-procfs", 14*mib + 1, false},
		{"machineadm-plugin-encryption-provider-file.exe", 14*mib + 1, false},
		{"machineadm-remote-configuration-provider-s3", 14*mib + 1, false},
		{"manager", 64 * mib, true},
		{"manager", 64*mib + 1, false},
		{"machineadm-conformance", 60 * mib, true},
	} {
		file := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file, c.size); err != nil {
			t.Fatal(err)
		}
		if out, err := script(t, ".", "size", file); (err == nil) != c.ok {
			t.Errorf("%s of %d bytes: %v\n%s", c.name, c.size, err, out)
		}
	}
}
