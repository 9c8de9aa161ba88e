package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/require"
)

// kit are the programs that are measured, built as make build does.
type kit struct {
	dir     string // of all programs
	plugins string // of the plugins alone
}

func (k kit) path(name string) string { return filepath.Join(k.dir, name) }

// built builds once, and not at all where no benchmark runs. TestMain removes what it leaves.
var built = sync.OnceValues(build)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := os.RemoveAll(kitDir()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func kitDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("machineadm-bench-%d", os.Getpid()))
}

func build() (kit, error) {
	k := kit{dir: kitDir(), plugins: filepath.Join(kitDir(), "plugins")}
	for _, dir := range []string{k.dir, k.plugins} {
		if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // a node's root reads it
			return k, err
		}
	}
	// Copied as a whole, each of them: how the linker writes a program lets it be mapped in smaller pieces than how a package
	// manager does, which costs a millisecond. And copies, not links: eight plugins of a machine are eight programs, which
	// share no pages of memory.
	copies := map[string][]string{
		"host/cmd/machineadm": {"machineadm"}, "testenv/bench/bare/host": {"bare-host"}, "testenv/bench/cmd/measure": {"measure"},
		"testenv/bench/bare/plugin": nil, "testenv/bench/files": {filePlugin("bench")},
		"testenv/noop": {noopPlugin}, "plugins/container-runtime/containerd": {containerdPlugin},
		"plugins/sysctl/procfs": {sysctlPlugin}, "plugins/kubernetes-node/kubeadm": {nodePlugin},
		"plugins/domain-join/activedirectory": {domainPlugin},
	}
	for i := range many {
		copies["testenv/bench/bare/plugin"] = append(copies["testenv/bench/bare/plugin"], barePlugin(i))
		copies["testenv/bench/files"] = append(copies["testenv/bench/files"], filePlugin(provider(i)))
	}
	for pkg, names := range copies {
		built := k.path("built")
		if err := require.Build(context.Background(), "../../"+pkg, built); err != nil {
			return k, err
		}
		data, err := os.ReadFile(built)
		if err != nil {
			return k, err
		}
		for _, name := range names {
			if err := require.WriteProgram(k.path(name), data); err != nil {
				return k, err
			}
		}
	}
	return k, nil
}

// Plugins that lie outside the directory of plugins.
const (
	noopPlugin       = "machineadm-noop-plugin-bench"
	containerdPlugin = "machineadm-container-runtime-plugin-containerd"
	nodePlugin       = "machineadm-kubernetes-node-plugin-kubeadm"
	domainPlugin     = "machineadm-domain-join-plugin-activedirectory"
)

// sysctlPlugin is needed by one benchmark, which looks for it where the others find theirs.
const sysctlPlugin = "plugins/machineadm-sysctl-plugin-procfs"

// many is how many plugins are many.
const many = 8

func provider(i int) string { return fmt.Sprintf("p%d", i+1) }

func filePlugin(provider string) string { return "plugins/machineadm-files-plugin-" + provider }

func barePlugin(i int) string { return fmt.Sprintf("bare-plugin-%d", i+1) }

// scene has the directories of one benchmark: an image root, directories for state and report, and files of documents.
type scene struct {
	kit
	b              *testing.B
	root           string
	state, run, in string
}

func newScene(b *testing.B) *scene {
	b.Helper()
	require.Linux(b)
	k, err := built()
	if err != nil {
		b.Fatal(err)
	}
	s := &scene{kit: k, b: b, in: b.TempDir(), run: memoryDir(b)}
	s.move(memoryDir(b), memoryDir(b))
	return s
}

// move has the scene use other directories for the image and the state.
func (s *scene) move(root, state string) {
	s.b.Helper()
	s.root, s.state = root, state
	s.write(filepath.Join(root, "etc/os-release"), "ID=debian\nVERSION_ID=\"12\"\n")
}

// memoryDir is a directory in memory where there is one: so that not the disk of this machine is measured. On a node /run,
// where reports go, is in memory too.
func memoryDir(b *testing.B) string {
	b.Helper()
	const shared = "/dev/shm"
	var fs unix.Statfs_t
	if err := unix.Statfs(shared, &fs); err != nil || fs.Type != unix.TMPFS_MAGIC || unix.Access(shared, unix.W_OK) != nil {
		b.Logf("%s is no file system in memory: the disk is measured too", shared)
		return b.TempDir()
	}
	dir, err := os.MkdirTemp(shared, "bench-") //nolint:usetesting // b.TempDir is not in memory
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			b.Error(err)
		}
	})
	return dir
}

func (s *scene) write(path, content string) string {
	s.b.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // like any /etc
		s.b.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.b.Fatal(err)
	}
	return path
}

// document is one of kind Files, as YAML and as what a plugin is given.
func document(name, provider string, files map[string]string) (yaml, asJSON string) {
	var text strings.Builder
	fmt.Fprintf(&text, "apiVersion: bench.example.com/v1\nkind: Files\nmetadata: {name: %s}\nspec:\n  provider: %s\n  files:\n", name, provider)
	type file struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}
	var list []file
	for _, path := range sortedKeys(files) {
		fmt.Fprintf(&text, "    - {path: %s, content: %q}\n", path, files[path])
		list = append(list, file{path, files[path]})
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": "bench.example.com/v1", "kind": "Files", "metadata": map[string]string{"name": name},
		"spec": map[string]any{"provider": provider, "files": list},
	})
	if err != nil {
		panic(err) // strings cannot fail
	}
	return text.String(), string(data)
}

// oneFile is the file of one document.
func oneFile() map[string]string {
	return map[string]string{"/etc/bench/a.conf": strings.Repeat("key = value\n", 40)}
}

// measure runs a command and returns its usage.
func (s *scene) measure(argv ...string) Usage {
	s.b.Helper()
	u, err := ParseUsage(s.usage(argv))
	if err != nil {
		s.b.Fatalf("%q: %v", argv, err)
	}
	return u
}

// refused measures a command that ends with a usage error.
func (s *scene) refused(argv ...string) Usage {
	s.b.Helper()
	var u Usage
	if err := json.Unmarshal(s.usage(argv), &u); err != nil || u.Exit != report.ExitUsage {
		s.b.Fatalf("%q: exit status %d: %v", argv, u.Exit, err)
	}
	return u
}

func (s *scene) usage(argv []string) []byte {
	s.b.Helper()
	cmd := exec.CommandContext(s.b.Context(), s.path("measure"), argv...)
	cmd.Env = append(os.Environ(), "TMPDIR="+s.run) // for sockets
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		s.b.Fatalf("%v: %s", err, &complaint)
	}
	return out
}

// machineadm is a command line of it.
func (s *scene) machineadm(verb, stream, state string) []string {
	argv := []string{s.path("machineadm"), verb, "--plugin-dir", s.plugins, "--path", stream}
	if verb != "validate" {
		argv = append(argv, "--root", s.root, "--state-dir", state, "--run-dir", s.run)
	}
	return argv
}

// bare is a command line of the bare host with n plugins.
func (s *scene) bare(verb, document string, n int) []string {
	argv := []string{s.path("bare-host"), verb, document, s.root}
	for i := range n {
		argv = append(argv, s.path(barePlugin(i)))
	}
	return argv
}

// remember applies until the digests of a stream's plugins are cached: see launch.Digests.
func (s *scene) remember(stream string, providers ...string) {
	s.b.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		s.measure(s.machineadm("apply", stream, s.state)...)
		data, err := os.ReadFile(filepath.Join(s.state, "digests.json"))
		unknown := slices.DeleteFunc(slices.Clone(providers), func(p string) bool {
			return bytes.Contains(data, []byte(filepath.Join(s.plugins, "machineadm-files-plugin-"+p)+`"`))
		})
		if len(unknown) == 0 {
			return
		}
		if time.Now().After(deadline) {
			s.b.Fatalf("not remembered are %q (%v)", unknown, err)
		}
	}
}

// forget removes the files of the document.
func (s *scene) forget() {
	s.b.Helper()
	if err := os.RemoveAll(filepath.Join(s.root, "etc/bench")); err != nil {
		s.b.Fatal(err)
	}
}
