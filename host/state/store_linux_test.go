package state

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/require"
)

// alone repeats a test in a process with its own mount namespace, and reports whether this is that process.
func alone(t *testing.T) bool {
	t.Helper()
	const mark = "STATE_TEST_ALONE"
	if os.Getenv(mark) == t.Name() {
		return true
	}
	require.Root(t)
	command := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1")
	command.Env = append(os.Environ(), mark+"="+t.Name())
	command.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	out, err := command.CombinedOutput()
	if errors.Is(err, unix.EPERM) {
		require.Missing(t, "needs the right to make a mount namespace")
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// withUmask sets the umask of the process, so its callers are not parallel.
func withUmask(t *testing.T, mask int) {
	t.Helper()
	before := syscall.Umask(mask)
	t.Cleanup(func() { syscall.Umask(before) })
}

func wantMode(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Error(err)
		return
	}
	if info.Mode() != want {
		t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
	}
}

func TestModesUnderAnyUmask(t *testing.T) {
	for name, mask := range map[string]int{"000": 0, "077": 0o077, "022": 0o022} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			withUmask(t, mask)
			state, run := filepath.Join(base, "lib", "state"), filepath.Join(base, "var", "run")
			store := opened(t, state, "machine-1")
			if err := (&Reports{RunDir: run, Store: store}).Write(full(), map[string]string{"document-0": "words"}); err != nil {
				t.Fatal(err)
			}
			if err := store.Choose("Sysctl/a", "procfs"); err != nil {
				t.Fatal(err)
			}
			if _, err := store.StreamDigest(nil); err != nil {
				t.Fatal(err)
			}
			if _, err := store.Reboots("boot").Count("generation"); err != nil {
				t.Fatal(err)
			}
			plugin, err := store.PluginDir("machineadm-sysctl-plugin-procfs", "Sysctl", "base")
			if err != nil {
				t.Fatal(err)
			}
			acquired(t, filepath.Join(run, "lock"))
			complete := filepath.Join(base, "cluster-api", "bootstrap-success.complete")
			if err := NewSentinel(complete).Write(); err != nil {
				t.Fatal(err)
			}
			for _, dir := range []string{state, plugin, filepath.Dir(plugin), filepath.Join(state, pluginsDir), filepath.Join(state, reportsDir)} {
				wantMode(t, dir, fs.ModeDir|0o700)
			}
			for _, file := range []string{
				filepath.Join(state, machineFile), filepath.Join(state, choicesFile), filepath.Join(state, keyFile), filepath.Join(state, rebootsFile),
				filepath.Join(state, reportsDir, kept(t, store)[0]), filepath.Join(run, DetailsFile), filepath.Join(run, "lock"),
			} {
				wantMode(t, file, 0o600)
			}
			for _, dir := range []string{filepath.Dir(run), run, filepath.Dir(complete)} {
				wantMode(t, dir, fs.ModeDir|0o755)
			}
			wantMode(t, filepath.Join(run, ReportFile), 0o644)
			wantMode(t, complete, 0o644)
		})
	}
}

func TestOpenDirectoryIsClosed(t *testing.T) {
	t.Parallel()
	for _, mode := range []fs.FileMode{0o755, 0o777, 0o701, 0o710} {
		dir := filepath.Join(t.TempDir(), "state")
		store := opened(t, dir, "machine-1")
		fill(t, store)
		plugin, err := store.PluginDir("machineadm-sysctl-plugin-procfs", "Sysctl", "base")
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []string{dir, filepath.Join(dir, pluginsDir), plugin} {
			if err := os.Chmod(d, mode); err != nil {
				t.Fatal(err)
			}
		}
		store = opened(t, dir, "machine-1")
		if _, err := store.PluginDir("machineadm-sysctl-plugin-procfs", "Sysctl", "base"); err != nil {
			t.Fatal(err)
		}
		for _, d := range []string{dir, filepath.Join(dir, pluginsDir), plugin} {
			wantMode(t, d, fs.ModeDir|0o700)
		}
		if choices, err := store.Choices(); err != nil || choices["Sysctl/base"] != "procfs" {
			t.Errorf("the state is lost: %v (%v)", choices, err)
		}
	}
}

// TestSharedDirectoryIsNotClosed: a mistyped --state-dir must not close a directory of other programs.
func TestSharedDirectoryIsNotClosed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "etc")
	write(t, filepath.Join(dir, "machine-id"), "machine-1\n", 0o644)
	write(t, filepath.Join(dir, "passwd"), "", 0o644)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	_, err := Open(dir, "machine-1")
	wantState(t, err, dir, "passwd")
	if after := tree(t, dir); after != before {
		t.Errorf("it was changed from\n%s\nto\n%s", before, after)
	}
	both := filepath.Join(t.TempDir(), "both") // state and run directory in one are fine
	if err := MakeRunDir(filepath.Join(both, "run")); err != nil {
		t.Fatal(err)
	}
	acquired(t, filepath.Join(both, "lock"))
	if err := (&Reports{RunDir: both, Store: opened(t, both, "machine-1")}).Write(full(), nil); err != nil {
		t.Error(err)
	}
	wantMode(t, both, fs.ModeDir|0o700)
}

func TestDirectoryOfAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	require.Root(t)
	dir := filepath.Join(t.TempDir(), "state")
	opened(t, dir, "machine-1")
	if err := os.Chown(dir, 65534, -1); err != nil {
		t.Fatal(err)
	}
	_, err := Open(dir, "machine-1")
	wantState(t, err, dir, "user 65534")
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v is not about a permission", err)
	}
}

func everyWrite(t *testing.T, dir string) map[string]error {
	t.Helper()
	store := &Store{dir: dir}
	_, opening := Open(dir, "machine-2")
	_, streamDigest := store.StreamDigest([]byte("stream"))
	_, reboot := store.Reboots("boot").Count("generation")
	_, plugin := store.PluginDir("machineadm-a-plugin-b", "A", "b")
	_, outbox := OutboxIn(dir).Keep(outgoing(), time.Unix(1, 0))
	l, lock := Acquire(filepath.Join(dir, "lock"))
	if lock == nil {
		release(t, l)
	}
	return map[string]error{
		"open": opening, "generation": streamDigest, "plugin directory": plugin, "lock": lock, "reboot": reboot, "outbox": outbox,
		"resolved": store.Resolved().Keep(strings.Repeat("0c", 32), nil),
		"bind":     store.Choose("Sysctl/a", strings.Repeat("a", 63)),
		"report":   (&Reports{RunDir: dir}).Write(full(), nil),
		"reports":  (&Reports{RunDir: filepath.Join(dir, "run"), Store: store}).Write(full(), map[string]string{"a": strings.Repeat("a", 1<<20)}),
	}
}

func mount(t *testing.T, options string, flags uintptr) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestReadOnly(t *testing.T) {
	if !alone(t) {
		return
	}
	dir := mount(t, "mode=0700", 0)
	opened(t, dir, "machine-1")
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	for what, err := range everyWrite(t, dir) {
		if wantState(t, err); !errors.Is(err, unix.EROFS) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if after := tree(t, dir); after != before {
		t.Errorf("it was changed from\n%s\nto\n%s", before, after)
	}
	opened(t, dir, "machine-1") // nothing to write
}

func TestFull(t *testing.T) {
	if !alone(t) {
		return
	}
	dir := mount(t, "mode=0700,size=256k", 0)
	store := opened(t, dir, "machine-1")
	fill(t, store)
	if err := (&Reports{RunDir: dir, Store: store}).Write(full(), nil); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("it is not full: %v", err)
	}
	remove(t, filepath.Join(dir, keyFile))
	if err := os.WriteFile(filepath.Join(dir, "more"), make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("it is not full: %v", err)
	}
	other := full()
	other.RunID = "another"
	for what, err := range map[string]error{
		"resolved": store.Resolved().Keep(strings.Repeat("0c", 32), make([]byte, 1<<20)),
		"bind":     store.Choose("Timesync/a", "chronyd"),
		"report":   (&Reports{RunDir: dir, Store: store}).Write(other, nil),
		"reboot": func() error {
			_, err := store.Reboots("another boot").Count("generation")
			return err
		}(),
		"generation": func() error {
			_, err := store.StreamDigest([]byte("stream"))
			return err
		}(),
		"outbox": func() error {
			o, err := OutboxIn(dir).Keep(outgoing(), time.Unix(7, 0))
			if o.Sequence != 7 {
				t.Errorf("the report that cannot be kept has the number %d", o.Sequence)
			}
			return err
		}(),
	} {
		if wantState(t, err); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if after, err := os.ReadFile(filepath.Join(dir, earlierFile)); err != nil || string(after) != string(before) {
		t.Errorf("the report of the earlier run is now %q (%v)", after, err)
	}
	if last, _, err := Last(dir, dir); !errors.Is(err, ErrLost) {
		t.Errorf("the earlier run passes for the last one: %+v (%v)", last, err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, resolvedDir)); !errors.Is(err, fs.ErrNotExist) && (err != nil || len(left) > 0) {
		t.Errorf("a part of what was resolved is kept: %v (%v)", left, err)
	}
	remove(t, filepath.Join(dir, "ballast"))
	reports := &Reports{RunDir: dir, Store: store}
	if err := reports.Write(other, nil); err != nil {
		t.Fatal(err)
	}
	if last, _, err := Last(dir, dir); err != nil || last.RunID != other.RunID || exists(t, filepath.Join(dir, earlierFile)) {
		t.Errorf("%+v (%v)", last, err)
	}
	if choices, err := store.Choices(); err != nil || len(choices) != 1 {
		t.Errorf("the choices are now %v (%v)", choices, err)
	}
}

// nobody repeats a test in a process of another user. prepare fills a directory that this user can reach; the result is the
// directory, and whether this is that process.
func nobody(t *testing.T, prepare func(dir string)) (dir string, ok bool) {
	t.Helper()
	const mark = "STATE_TEST_NOBODY"
	if dir, ok := os.LookupEnv(mark); ok {
		if err := syscall.Setuid(65534); err != nil {
			t.Fatal(err)
		}
		return dir, true
	}
	require.Root(t)
	dir = openToAll(t)
	prepare(dir)
	command := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1")
	command.Env = append(os.Environ(), mark+"="+dir)
	if out, err := command.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return "", false
}

func TestHeldForEveryone(t *testing.T) {
	dir, ok := nobody(t, func(dir string) {
		release(t, acquired(t, filepath.Join(dir, "free")))
		acquired(t, filepath.Join(dir, "taken"))
	})
	if !ok {
		return
	}
	if _, err := os.Open(filepath.Join(dir, "taken")); !errors.Is(err, fs.ErrPermission) {
		t.Fatalf("another user can open the lock, and so hold it: %v", err)
	}
	if !Held(filepath.Join(dir, "taken")) || Held(filepath.Join(dir, "free")) {
		t.Errorf("taken: %v, free: %v", Held(filepath.Join(dir, "taken")), Held(filepath.Join(dir, "free")))
	}
}

// TestLastForEveryone: for a user who cannot read the state directory, the error is not ErrNoReport.
func TestLastForEveryone(t *testing.T) {
	dir, ok := nobody(t, func(dir string) {
		store := opened(t, filepath.Join(dir, "state"), "machine-1")
		if err := (&Reports{RunDir: filepath.Join(dir, "run"), Store: store}).Write(full(), nil); err != nil {
			t.Fatal(err)
		}
	})
	if !ok {
		return
	}
	if last, _, err := Last(filepath.Join(dir, "run"), filepath.Join(dir, "state")); err != nil || last.RunID != full().RunID {
		t.Errorf("the report is for everyone: %v", err)
	}
	if _, _, err := Last(filepath.Join(dir, "gone"), filepath.Join(dir, "state")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v, want a permission error", err)
	}
	if Peek(filepath.Join(dir, "state"), "machine-1") != nil {
		t.Error("another user can open the store")
	}
}

// openToAll returns a directory that every user can reach; that of t.TempDir can be private.
func openToAll(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "state-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
