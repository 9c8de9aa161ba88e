// Package outside holds plugins of others, and the controller of a storage of others: modules of their own that need nothing but what machineadm publishes.
package outside

//machineadm:first

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/require"
)

const root = "../.."

// modules maps the folder of each module to its plugin, and the folder of a controller to nothing.
func modules() map[string]string {
	return map[string]string{
		"motd":        naming.Binary("Motd", "file"),
		"sysctlfiles": naming.Binary(v1alpha1.KindSysctl, "filesonly"),
		"shelf":       naming.Binary(v1alpha1.KindRemoteConfig, "shelf"),
		"keyfile":     naming.Binary(v1alpha1.KindEncryptedConfig, "keyfile"),
		"claims":      "",
	}
}

// run runs a command in a directory and returns what it prints to stdout.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		t.Fatalf("%s %s in %s: %v\n%s%s", name, strings.Join(args, " "), dir, err, &stdout, &stderr)
	}
	return stdout.String()
}

// offline keeps the go command from the network: what these modules need, the checkout needs too. That holds for builds
// and tests; go mod tidy also wants the tests of dependencies.
func offline(more ...string) []string {
	return append([]string{"GOPROXY=off", "GOSUMDB=off", "GOWORK=off", "CGO_ENABLED=0"}, more...)
}

// TestModules: each is in order by itself, offline. One of them is built for every make test.
func TestModules(t *testing.T) {
	t.Parallel()
	require.Linux(t)
	for dir, plugin := range modules() {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			if dir != "motd" {
				require.Tier(t, require.System)
			}
			run(t, dir, offline(), "go", "vet", "./...")
			run(t, dir, offline(), "go", "test", "./...")
			if plugin != "" { // a management cluster has no Windows
				t.Run("windows", func(t *testing.T) { vetForWindows(t, dir) })
			}
		})
	}
}

// vetForWindows compiles a module, and all that it needs, for Windows.
func vetForWindows(t *testing.T, dir string) {
	t.Helper()
	require.Tier(t, require.System)
	run(t, dir, offline("GOOS=windows"), "go", "vet", "./...")
}

// TestModulesNeedNoOtherVersions, so that the checkout's own downloads are all that they need.
func TestModulesNeedNoOtherVersions(t *testing.T) {
	t.Parallel()
	ours := requirements(t, root)
	for dir := range modules() {
		theirs := requirements(t, dir)
		delete(theirs, "github.com/machineadm/machineadm")
		if len(theirs) < 3 {
			t.Errorf("%s requires %d modules: the test compares nothing", dir, len(theirs))
		}
		for path, version := range theirs {
			if ours[path] != version {
				t.Errorf("%s requires %s %s, the checkout %q: run go mod tidy in testenv/outside/%s", dir, path, version, ours[path], dir)
			}
		}
	}
}

// requirements are the versions that a go.mod names. It names all that a build needs, indirect ones included.
func requirements(t *testing.T, dir string) map[string]string {
	t.Helper()
	var mod struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal([]byte(run(t, dir, offline(), "go", "mod", "edit", "-json")), &mod); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, r := range mod.Require {
		out[r.Path] = r.Version
	}
	return out
}

// build builds the host into bin, procfs and two plugins of others beside it, and returns the directory. The host is
// apart because it also looks for plugins in its own directory.
func build(t *testing.T) string {
	t.Helper()
	built, err := filepath.Abs(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, pkg := range map[string]string{host: "./host/cmd/machineadm", procfs: "./plugins/sysctl/procfs"} {
		run(t, root, nil, "go", "build", "-o", filepath.Join(built, name), pkg)
	}
	for _, dir := range []string{"motd", "sysctlfiles"} {
		run(t, dir, offline(), "go", "build", "-o", filepath.Join(built, modules()[dir]), ".")
	}
	return built
}

const (
	host      = "bin/machineadm"
	procfs    = "machineadm-sysctl-plugin-procfs"
	filesonly = "machineadm-sysctl-plugin-filesonly"

	motd = "apiVersion: example.com/v1\nkind: Motd\nmetadata: {name: welcome}\nspec: {text: Mind the step.}\n"
	// sysctl is the beginning of a document, whose spec follows.
	sysctl = "---\napiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Sysctl\nmetadata: {name: node}\nspec: "

	motdFile    = "etc/motd"
	sysctlFile  = "etc/sysctl.d/99-machineadm-node.conf"
	modulesFile = "etc/modules-load.d/machineadm-node.conf"
	choicesFile = "etc/machineadm/choices.json"
)

// TestHost: the real host prepares an image with plugins of kinds that are not its own.
func TestHost(t *testing.T) {
	t.Parallel()
	require.Linux(t)
	built := build(t)
	for name, test := range map[string]struct {
		plugins   map[string]string // name of the file: the binary that it is
		stream    string
		exit      int
		providers string // of the documents
		files     []string
		says      []string // on stderr
	}{
		"a refused field goes to the next provider": {
			stream:    motd + sysctl + "{modules: [overlay], parameters: {kernel.panic: 10}}\n",
			providers: "file procfs", files: []string{motdFile, sysctlFile, modulesFile, choicesFile},
		},
		"a refused profile too": {
			stream: sysctl + "{profiles: [kubernetes]}\n", providers: "procfs", files: []string{sysctlFile, modulesFile, choicesFile},
		},
		"the one that fits an image best": {
			stream:    motd + sysctl + "{parameters: {kernel.panic: 10}}\n",
			providers: "file filesonly", files: []string{motdFile, sysctlFile, choicesFile},
		},
		"a named provider is not replaced": {
			stream: motd + sysctl + "{provider: filesonly, modules: [overlay]}\n", exit: report.ExitPrecondition,
			providers: "file filesonly", says: []string{"stream.yaml:9:29: Sysctl/node: spec.modules: ", "procfs"},
		},
		"none is left": {
			plugins: map[string]string{filesonly: filesonly},
			stream:  sysctl + "{modules: [overlay]}\n", exit: report.ExitPrecondition,
			says: []string{"no installed provider can do this: filesonly: "},
		},
		"a tie names both": {
			plugins: map[string]string{filesonly: filesonly, filesonly + "2": filesonly, procfs: procfs},
			stream:  sysctl + "{parameters: {kernel.panic: 10}}\n", exit: report.ExitPrecondition,
			says: []string{"several providers fit equally well: " + filesonly + " and " + filesonly + "2"},
		},
		"a new kind is checked by its plugin": {
			stream: strings.Replace(motd, "Mind the step.", `""`, 1), exit: report.ExitUsage,
			providers: "file", says: []string{"stream.yaml:4:8: Motd/welcome: spec.text: is required"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.plugins == nil {
				test.plugins = map[string]string{filesonly: filesonly, procfs: procfs, modules()["motd"]: modules()["motd"]}
			}
			got := apply(t, built, test.plugins, test.stream)
			if got.exit != test.exit || strings.Join(got.providers, " ") != test.providers {
				t.Errorf("exit %d with %q, want %d with %q\n%s", got.exit, got.providers, test.exit, test.providers, got.stderr)
			}
			if want := slices.Sorted(slices.Values(test.files)); !slices.Equal(got.files, want) {
				t.Errorf("files %q, want %q", got.files, want)
			}
			for _, want := range test.says {
				if !strings.Contains(got.stderr, want) {
					t.Errorf("says\n%s\nwithout %q", got.stderr, want)
				}
			}
		})
	}
}

type outcome struct {
	exit             int
	stderr           string
	providers, files []string
}

// apply applies a stream to an image root with an empty /etc, with these plugins installed.
func apply(t *testing.T, built string, plugins map[string]string, stream string) outcome {
	t.Helper()
	dir := t.TempDir()
	image, installed, reports := filepath.Join(dir, "image"), filepath.Join(dir, "plugins"), filepath.Join(dir, "run")
	if err := errors.Join(os.MkdirAll(filepath.Join(image, "etc"), 0o755), os.Mkdir(installed, 0o755)); err != nil {
		t.Fatal(err)
	}
	for name, binary := range plugins {
		if err := require.CopyProgram(filepath.Join(installed, name), filepath.Join(built, binary)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "stream.yaml")
	if err := os.WriteFile(path, []byte(stream), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), filepath.Join(built, host), "apply", "--plugin-dir", installed,
		"--root", image, "--path", path, "--run-dir", reports, "--state-dir", filepath.Join(dir, "state"))
	var stderr bytes.Buffer
	c.Stderr = &stderr
	if err := c.Run(); err != nil && !exited(err) {
		t.Fatal(err)
	}
	got := outcome{exit: c.ProcessState.ExitCode(), stderr: stderr.String(), files: filesBelow(t, image)}
	data, err := os.ReadFile(filepath.Join(reports, "report.json"))
	if err != nil {
		t.Fatalf("%v\n%s", err, got.stderr)
	}
	var r report.Report
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	for _, d := range r.Documents {
		if d.Provider != "" {
			got.providers = append(got.providers, d.Provider)
		}
	}
	return got
}

func exited(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit)
}

// filesBelow lists the files in a directory, sorted, with slashes.
func filesBelow(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		below, err := filepath.Rel(dir, name)
		files = append(files, filepath.ToSlash(below))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	return files
}
