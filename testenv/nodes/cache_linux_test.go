package nodes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/machineadm/machineadm/internal/require"
)

func tempCache(t *testing.T) cache {
	t.Helper()
	c := cache{dir: t.TempDir()}
	if err := os.Mkdir(c.runDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	return c
}

func writesTree(site buildSite) error {
	return os.WriteFile(filepath.Join(site.dir, "tree"), []byte("complete"), 0o644)
}

func TestCacheBuildsOnce(t *testing.T) {
	t.Parallel()
	c := tempCache(t)
	var builds atomic.Int32
	a := artefact{what: "test", key: "key", build: func(_ context.Context, site buildSite) error {
		builds.Add(1)
		return writesTree(site)
	}}
	// Each caller opens the lock file itself, as another process would.
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			dir, err := c.once(t.Context(), a, t.Logf)
			if err != nil {
				t.Error(err)
				return
			}
			if got, err := os.ReadFile(filepath.Join(dir, "tree")); err != nil || string(got) != "complete" {
				t.Errorf("found %q, %v", got, err)
			}
		})
	}
	callers.Wait()
	if n := builds.Load(); n != 1 {
		t.Errorf("built %d times", n)
	}
}

func TestCacheKeepsNothingOfAFailedBuild(t *testing.T) {
	t.Parallel()
	c := tempCache(t)
	// As if an earlier process had been killed in the middle.
	if err := os.MkdirAll(filepath.Join(c.dir, "key.building/half"), 0o755); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	a := artefact{what: "test", key: "key", build: func(_ context.Context, site buildSite) error {
		if _, err := os.Stat(filepath.Join(site.dir, "half")); err == nil {
			t.Error("the build starts in what an earlier one left")
		}
		return errors.Join(writesTree(site), broken)
	}}
	if _, err := c.once(t.Context(), a, t.Logf); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	for _, left := range []string{"key", "key.building"} {
		if _, err := os.Stat(filepath.Join(c.dir, left)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", left, err)
		}
	}
	a.build = func(_ context.Context, site buildSite) error { return writesTree(site) }
	if _, err := c.once(t.Context(), a, t.Logf); err != nil {
		t.Error(err)
	}
}

// endless is a build whose builder mounts something, leaves a grandchild, and never ends by itself.
func endless(marker string) artefact {
	return artefact{what: "endless", key: "key", build: func(ctx context.Context, site buildSite) error {
		env := []string{"PATH=" + nodePath}
		script := `mkdir m; mount -t tmpfs tmpfs m; setsid sleep "$1" & sleep 0.1; : >started; wait`
		return runIsolated(ctx, site, nil, env, "sh", "-c", script, "sh", marker)
	}}
}

func TestCancelledBuildLeavesNothing(t *testing.T) {
	t.Parallel()
	require.Root(t)
	require.Tool(t, "unshare")
	c := tempCache(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const marker = "87651"
	go func() {
		defer cancel()
		waitFor(t, "the builder to run", func() bool { return fileExists(filepath.Join(c.dir, "key.building/started")) })
	}()
	if _, err := c.once(ctx, endless(marker), t.Logf); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	wantBuilderGone(t, c, marker)
}

const buildChildEnv = "MACHINEADM_NODES_TEST_BUILD_CHILD"

// TestBuildChild is the process that TestKilledBuildLeavesNothing kills.
func TestBuildChild(t *testing.T) {
	dir := os.Getenv(buildChildEnv)
	if dir == "" {
		return
	}
	_, err := cache{dir: dir}.once(t.Context(), endless("87652"), t.Logf)
	fmt.Println("the endless build ended:", err)
}

func TestKilledBuildLeavesNothing(t *testing.T) {
	t.Parallel()
	require.Root(t)
	require.Tool(t, "unshare")
	c := tempCache(t)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBuildChild$")
	child.Env = append(os.Environ(), buildChildEnv+"="+c.dir)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the builder to run", func() bool { return fileExists(filepath.Join(c.dir, "key.building/started")) })
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var killed *exec.ExitError
	if err := child.Wait(); !errors.As(err, &killed) || killed.ExitCode() != -1 {
		t.Errorf("the child ended by itself: %v", err)
	}
	wantBuilderGone(t, c, "87652")
}

// wantBuilderGone checks processes, mounts and, by building again, the lock and the half-built directory.
func wantBuilderGone(t *testing.T, c cache, marker string) {
	t.Helper()
	waitFor(t, "the builder's processes to end", func() bool {
		return exec.CommandContext(t.Context(), "pgrep", "-f", "^sleep "+marker).Run() != nil
	})
	mounts, err := readMounts()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mounts {
		if m.point == filepath.Join(c.dir, "key.building/m") {
			t.Errorf("left mounted: %s", m.point)
		}
	}
	if fileExists(filepath.Join(c.dir, "key")) {
		t.Error("an unfinished build is in the cache")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	again := artefact{what: "test", key: "key", build: func(_ context.Context, site buildSite) error { return writesTree(site) }}
	if _, err := c.once(ctx, again, t.Logf); err != nil {
		t.Error(err)
	}
}

func TestKeysFollowTheRecipe(t *testing.T) {
	t.Parallel()
	c := cache{dir: "/cache"}
	seen := map[string]string{}
	for name, layers := range map[string][]Layer{"one": {"one"}, "two": {"two"}, "one+two": {"one", "two"}, "two+one": {"two", "one"}, "both": {"one two"}} {
		for _, suite := range Suites() {
			all := c.artefacts(Options{Suite: suite, Layers: layers})
			top := all[len(all)-1]
			if other, ok := seen[top.key]; ok {
				t.Errorf("%s on %s has the key of %s", name, suite, other)
			}
			seen[top.key] = name
			if all[0].key != rootfs(suite).key {
				t.Errorf("%s on %s stands on %s", name, suite, all[0].key)
			}
		}
	}
	if keyOf("x", "ab", "c") == keyOf("x", "a", "bc") {
		t.Error("the parts of a recipe run into each other")
	}
}

func TestOverlayOptionsEscape(t *testing.T) {
	t.Parallel()
	o := overlay{lowers: []string{"/top", `/with:colon,comma\`}, upper: "/u,p", work: "/work"}
	want := `lowerdir=/top:/with\:colon\,comma\\,upperdir=/u\,p,workdir=/work,volatile`
	if got := o.options(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestProcessIdentity(t *testing.T) {
	t.Parallel()
	self, err := thisProcess()
	if err != nil {
		t.Fatal(err)
	}
	if !self.alive() {
		t.Error("this process is not alive")
	}
	if (process{pid: self.pid, start: self.start + "0"}).alive() {
		t.Error("a process is taken for an earlier one with its number")
	}
	ended := exec.CommandContext(t.Context(), "true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	if (process{pid: fmt.Sprint(ended.Process.Pid), start: "1"}).alive() {
		t.Error("a process that ended is alive")
	}
	// A name with spaces and parentheses shifts the fields for a simple parser.
	named := exec.CommandContext(t.Context(), "sh", "-c", `printf 'a) R 1 (b' >/proc/self/comm; echo; read -r _`)
	in, err := named.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := named.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := named.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	odd, err := processOf(fmt.Sprint(named.Process.Pid))
	if err != nil || len(odd.start) < len(self.start) {
		t.Errorf("start time %q (this process: %q), %v", odd.start, self.start, err)
	}
	if err := errors.Join(in.Close(), ignoreExit(named.Wait())); err != nil {
		t.Error(err)
	}
}

// ignoreExit keeps every error but a non-zero exit status.
func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := poll(ctx, pollInterval, what, func() (bool, error) { return holds(), nil })
	if err != nil {
		t.Error(err)
	}
}
