package state

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// fill writes every kind of state into a store.
func fill(t *testing.T, store *Store) {
	t.Helper()
	if err := store.Choose("Sysctl/base", "procfs"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.StreamDigest([]byte("stream")); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Reboots("boot").Count("generation"); err != nil {
		t.Fatal(err)
	}
	if err := store.KeepPending(waiting()); err != nil {
		t.Fatal(err)
	}
	dir, err := store.PluginDir("machineadm-sysctl-plugin-procfs", "Sysctl", "base")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "intent"), "half done", 0o600)
	if err := (&Reports{RunDir: t.TempDir(), Store: store}).Write(full(), nil); err != nil {
		t.Fatal(err)
	}
}

func TestSameMachineKeepsItsState(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "state")
	fill(t, opened(t, dir, "machine-1"))
	before := tree(t, dir)
	opened(t, dir, "machine-1")
	if after := tree(t, dir); after != before {
		t.Errorf("opening changed the state from\n%s\nto\n%s", before, after)
	}
}

func TestStateOfAnotherMachineIsRemoved(t *testing.T) {
	t.Parallel()
	for name, corrupt := range map[string]func(t *testing.T, dir string){
		"a clone":                   func(*testing.T, string) {},
		"no machine-id":             func(t *testing.T, dir string) { remove(t, filepath.Join(dir, machineFile)) },
		"killed during the removal": func(t *testing.T, dir string) { write(t, filepath.Join(dir, machineFile), "", 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "state")
			first := opened(t, dir, "machine-1")
			fill(t, first)
			streamDigest, err := first.StreamDigest([]byte("stream"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "lock"), "", 0o600)
			corrupt(t, dir)
			second := opened(t, dir, "machine-2")
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, e := range entries {
				left = append(left, e.Name())
			}
			if got := strings.Join(left, " "); got != "lock machine-id" {
				t.Errorf("the remaining files are %s", got)
			}
			if choices, err := second.Choices(); err != nil || len(choices) != 0 {
				t.Errorf("choices %v (%v)", choices, err)
			}
			if other, err := second.StreamDigest([]byte("stream")); err != nil || other == streamDigest {
				t.Errorf("the key survived (%v)", err)
			}
			if Peek(dir, "machine-2") == nil || Peek(dir, "machine-1") != nil {
				t.Error("the state is not bound to the new machine")
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// TestWithoutMachine: a run on an image has no machine-id; it neither binds nor removes state.
func TestWithoutMachine(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	fill(t, opened(t, dir, "machine-1"))
	before := tree(t, dir)
	opened(t, dir, "")
	if after := tree(t, dir); after != before {
		t.Errorf("opening changed the state from\n%s\nto\n%s", before, after)
	}
	other := filepath.Join(t.TempDir(), "state")
	opened(t, other, "")
	if exists(t, filepath.Join(other, machineFile)) {
		t.Error("the state is bound to a machine")
	}
}

func TestPeekWritesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	if Peek(dir, "machine-1") != nil || exists(t, dir) {
		t.Error("there must be no store, and none is created")
	}
	fill(t, opened(t, dir, "machine-1"))
	before := tree(t, dir)
	store := Peek(dir, "machine-1")
	if store == nil {
		t.Fatal("there is a store")
	}
	if choices, err := store.Choices(); err != nil || choices["Sysctl/base"] != "procfs" {
		t.Errorf("choices %v (%v)", choices, err)
	}
	if got, err := store.PluginDir("machineadm-sysctl-plugin-procfs", "Sysctl", "base"); err != nil || !exists(t, got) {
		t.Errorf("the directory of a plugin: %q (%v)", got, err)
	}
	if got, err := store.PluginDir("machineadm-sysctl-plugin-procfs", "Sysctl", "other"); err != nil || got != "" {
		t.Errorf("an absent directory: %q (%v)", got, err)
	}
	for name, machine := range map[string]string{"another machine": "machine-2", "no machine": ""} {
		if Peek(dir, machine) != nil {
			t.Errorf("%s can open the store", name)
		}
	}
	if after := tree(t, dir); after != before {
		t.Errorf("peeking changed the state from\n%s\nto\n%s", before, after)
	}
	write(t, filepath.Join(dir, machineFile), "\n", 0o600)
	if Peek(dir, "") != nil {
		t.Error("an empty machine-id matches none")
	}
}

func TestStreamDigest(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	name := func(store *Store, stream string) string {
		t.Helper()
		streamDigest, err := store.StreamDigest([]byte(stream))
		if err != nil {
			t.Fatal(err)
		}
		if len(streamDigest) != 32 || strings.Trim(streamDigest, "0123456789abcdef") != "" {
			t.Errorf("%q is not 32 hexadecimal digits", streamDigest)
		}
		return streamDigest
	}
	store := opened(t, dir, "machine-1")
	first := name(store, "password: 1234")
	if again := name(opened(t, dir, "machine-1"), "password: 1234"); again != first {
		t.Errorf("the same stream is %s and %s", first, again)
	}
	if name(store, "password: 1235") == first {
		t.Error("two streams have one name")
	}
	// A reader of the report must not be able to guess the password.
	if name(opened(t, filepath.Join(t.TempDir(), "state"), "machine-1"), "password: 1234") == first {
		t.Error("two keys give one name")
	}
	key, err := os.ReadFile(filepath.Join(dir, keyFile))
	if err != nil || len(key) != 32 || strings.Contains(string(key), "1234") {
		t.Errorf("the key has %d bytes (%v)", len(key), err)
	}
}

func TestDamagedKeyIsReplaced(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	store := opened(t, dir, "machine-1")
	path := filepath.Join(dir, keyFile)
	seen := map[string]bool{}
	for _, content := range []string{"", "short", strings.Repeat("long", 20)} {
		write(t, path, content, 0o644)
		streamDigest, err := store.StreamDigest([]byte("stream"))
		if err != nil || seen[streamDigest] {
			t.Errorf("%q (%v)", streamDigest, err)
		}
		seen[streamDigest] = true
		info, err := os.Stat(path)
		if err != nil || info.Size() != 32 || runtime.GOOS != "windows" && info.Mode() != 0o600 {
			t.Errorf("the key is %v (%v)", info, err)
		}
	}
	remove(t, path)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := store.StreamDigest([]byte("stream"))
	wantState(t, err, path)
}

func TestPluginDirectories(t *testing.T) {
	t.Parallel()
	store := opened(t, filepath.Join(t.TempDir(), "state"), "machine-1")
	long := strings.Repeat(strings.Repeat("a", 63)+".", 3) + strings.Repeat("b", 61)
	seen := map[string]bool{}
	for _, p := range [][3]string{
		{"machineadm-sysctl-plugin-procfs", "Sysctl", "base"},
		{"machineadm-sysctl-plugin-procfs", "Sysctl", "base.more"},
		{"machineadm-sysctl-plugin-procfs", "Timesync", "base"},
		{"machineadm-sysctl-plugin-other", "Sysctl", "base"},
		{"machineadm-sysctl-plugin-procfs", "Sysctl", long},
		{"machineadm-sysctl-plugin-procfs", "Sysctl", long[:252] + "c"},
	} {
		dir, err := store.PluginDir(p[0], p[1], p[2])
		if err != nil {
			t.Fatal(err)
		}
		again, err := store.PluginDir(p[0], p[1], p[2])
		if seen[dir] || again != dir || err != nil {
			t.Errorf("%v has %s and %s (%v)", p, dir, again, err)
		}
		seen[dir] = true
	}
	for _, p := range [][3]string{{"..", "Sysctl", "a"}, {"", "Sysctl", "a"}, {"a/b", "Sysctl", "a"}, {"a", "Sysctl", "../../a"}} {
		if dir, err := store.PluginDir(p[0], p[1], p[2]); err == nil {
			t.Errorf("%v has %s", p, dir)
		}
	}
}

func TestPathIsNoDirectory(t *testing.T) {
	t.Parallel()
	elsewhere := t.TempDir()
	attempts := map[string]func(store *Store) error{
		"":         func(store *Store) error { _, err := Open(store.dir, "machine-1"); return err },
		pluginsDir: func(store *Store) error { _, err := store.PluginDir("machineadm-a-plugin-b", "A", "c"); return err },
		pluginsDir + "/machineadm-a-plugin-b": func(store *Store) error {
			_, err := store.PluginDir("machineadm-a-plugin-b", "A", "c")
			return err
		},
		reportsDir: func(store *Store) error { return (&Reports{RunDir: t.TempDir(), Store: store}).Write(full(), nil) },
	}
	kinds := map[string]func(path string) error{
		"a file":                      func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a link to a directory":       func(path string) error { return os.Symlink(elsewhere, path) },
		"a link to nothing":           func(path string) error { return os.Symlink(filepath.Join(elsewhere, "gone"), path) },
		"a link to the directory's .": func(path string) error { return os.Symlink(".", path) },
	}
	for place, attempt := range attempts {
		for kind, put := range kinds {
			t.Run(kind+" at "+place, func(t *testing.T) {
				if runtime.GOOS == "windows" && kind != "a file" {
					t.Skip("making a link needs a privilege")
				}
				store := &Store{dir: filepath.Join(t.TempDir(), "state")}
				path := filepath.Join(store.dir, filepath.FromSlash(place))
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := put(path); err != nil {
					t.Fatal(err)
				}
				what := strings.Join(strings.Fields(kind)[:2], " ") // a file, a link
				if what == "a file" {
					what = "is not a directory"
				}
				wantState(t, attempt(store), path, what, "remove it")
			})
		}
	}
	if entries, err := os.ReadDir(elsewhere); err != nil || len(entries) > 0 {
		t.Errorf("a link was followed: %v (%v)", entries, err)
	}
}

func TestRemovalDoesNotFollowLinks(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("making a link needs a privilege")
	}
	dir, elsewhere := filepath.Join(t.TempDir(), "state"), t.TempDir()
	opened(t, dir, "machine-1")
	write(t, filepath.Join(elsewhere, "precious"), "", 0o600)
	for _, name := range []string{pluginsDir, reportsDir} {
		if err := os.Symlink(elsewhere, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	opened(t, dir, "machine-2")
	if !exists(t, filepath.Join(elsewhere, "precious")) {
		t.Error("the target of a link was removed")
	}
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run", "cluster-api", "bootstrap-success.complete")
	s := NewSentinel(path)
	if err := s.Remove(); err != nil {
		t.Errorf("an absent sentinel: %v", err)
	}
	for range 2 {
		if err := s.Write(); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != "success\n" {
			t.Errorf("%q (%v)", data, err)
		}
	}
	if err := s.Remove(); err != nil || exists(t, path) {
		t.Errorf("it is still there (%v)", err)
	}
	write(t, filepath.Join(path, "occupied"), "", 0o600)
	if err := s.Remove(); err == nil {
		t.Error("a sentinel that cannot be removed must be an error")
	}
	if err := s.Write(); err == nil {
		t.Error("a sentinel that cannot be written must be an error")
	}
}

func TestStateError(t *testing.T) {
	t.Parallel()
	if stateError(nil) != nil {
		t.Error("no error became one")
	}
	if err := stateError(os.ErrPermission); !errors.Is(err, ErrState) || !errors.Is(err, os.ErrPermission) {
		t.Errorf("%v lost its cause", err)
	}
}
