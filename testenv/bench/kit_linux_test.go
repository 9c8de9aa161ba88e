package bench

import (
	"bytes"
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

	"github.com/machineadm/machineadm/internal/require"
)

const module = "github.com/machineadm/machineadm/"

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
	for target, pkg := range map[string]string{
		"machineadm": "host/cmd/machineadm", "bare-host": "testenv/bench/bare/host", "bare-plugin": "testenv/bench/bare/plugin",
		"measure": "testenv/bench/cmd/measure", "plugins/machineadm-files-plugin-bench": "testenv/bench/files",
	} {
		cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", k.path(target), module+pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return k, fmt.Errorf("build %s: %w\n%s", pkg, err, out)
		}
	}
	// Copies, not links: eight plugins of a machine are eight programs, which share no pages of memory.
	for i := range many {
		for original, copied := range map[string]string{
			"plugins/machineadm-files-plugin-bench": "plugins/machineadm-files-plugin-" + provider(i), "bare-plugin": barePlugin(i),
		} {
			data, err := os.ReadFile(k.path(original))
			if err != nil {
				return k, err
			}
			if err := os.WriteFile(k.path(copied), data, 0o755); err != nil { //nolint:gosec // a program
				return k, err
			}
		}
	}
	return k, nil
}

// many is how many plugins are many.
const many = 8

func provider(i int) string { return fmt.Sprintf("p%d", i+1) }

func barePlugin(i int) string { return fmt.Sprintf("bare-plugin-%d", i+1) }

// scene is a place for one benchmark: an image root, directories for state and report, and files of documents.
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
	s := &scene{kit: k, b: b, root: b.TempDir(), state: b.TempDir(), in: b.TempDir(), run: memoryDir(b)}
	s.write(filepath.Join(s.root, "etc/os-release"), "ID=debian\nVERSION_ID=\"12\"\n")
	return s
}

// memoryDir is a directory in memory where there is one: on a node /run, where reports go, is one.
func memoryDir(b *testing.B) string {
	b.Helper()
	const shared = "/dev/shm"
	var fs unix.Statfs_t
	if err := unix.Statfs(shared, &fs); err != nil || fs.Type != unix.TMPFS_MAGIC || unix.Access(shared, unix.W_OK) != nil {
		b.Logf("%s is no file system in memory: reports go to disk", shared)
		return b.TempDir()
	}
	dir, err := os.MkdirTemp(shared, "machineadm-bench-") //nolint:usetesting // b.TempDir is not in memory
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

// oneFile is what one document writes.
func oneFile() map[string]string {
	return map[string]string{"/etc/bench/a.conf": strings.Repeat("key = value\n", 40)}
}

// measure runs a command and returns what it took.
func (s *scene) measure(argv ...string) Usage {
	s.b.Helper()
	cmd := exec.CommandContext(s.b.Context(), s.path("measure"), argv...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		s.b.Fatalf("%v: %s", err, &complaint)
	}
	u, err := ParseUsage(out)
	if err != nil {
		s.b.Fatalf("%q: %v", argv, err)
	}
	return u
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

// remember applies until the machine knows the plugins of a stream, which were only just made: see launch.Digests.
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

// forget removes what the document has written.
func (s *scene) forget() {
	s.b.Helper()
	if err := os.RemoveAll(filepath.Join(s.root, "etc/bench")); err != nil {
		s.b.Fatal(err)
	}
}
