package suite

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/tools"
)

// checkout is a small checkout with packages of its own, and a cache for their results.
type checkout struct {
	t    *testing.T
	root string
	out  string
}

const systemTest = `package p

import (
	"os"
	"testing"

	"github.com/machineadm/machineadm/internal/require"
)

func TestNeedsNothing(t *testing.T) {}

`

// newCheckout has internal/require and what content keys of every package have, and is in a cache directory of its own.
func newCheckout(t *testing.T, files map[string]string) *checkout {
	t.Helper()
	needs.Linux(t)              // signals and the cache directory
	needs.Tier(t, needs.System) // go test runs in it, again and again
	c := &checkout{t: t, root: t.TempDir()}
	top, err := tools.Root(".")
	require.NoError(t, err)
	for _, dir := range []string{"internal/require", "testenv/tools/netrpc"} {
		require.NoError(t, os.MkdirAll(filepath.Join(c.root, filepath.Dir(dir)), 0o755))
		require.NoError(t, os.CopyFS(filepath.Join(c.root, dir), os.DirFS(filepath.Join(top, dir))))
	}
	tests, err := filepath.Glob(filepath.Join(c.root, "*/*/*_test.go"))
	require.NoError(t, err)
	more, err := filepath.Glob(filepath.Join(c.root, "*/*/*/*_test.go"))
	require.NoError(t, err)
	for _, file := range append(tests, more...) {
		require.NoError(t, os.Remove(file))
	}
	c.write("go.mod", "module "+Module+"\n\ngo 1.26\n")
	c.write("testenv/tools/build.sh", "#!/bin/sh\n")
	c.write("testenv/deps/packages", "")
	for name, text := range files {
		c.write(name, text)
	}
	// The build cache is the machine's: what is tested here does not depend on it.
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	require.NoError(t, err)
	t.Setenv("GOCACHE", strings.TrimSpace(string(cache)))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("GOFLAGS", os.Getenv("GOFLAGS")+" -mod=mod")
	return c
}

func (c *checkout) write(name, text string) {
	c.t.Helper()
	// Spelled out, these words would put the tests of this package into the tier.
	text = strings.NewReplacer("needSystem(t)", "require.Tier(t, require."+"System)", "//CORE", "//machineadm:"+"core", "//ALONE", "//machineadm:"+"alone").Replace(text)
	at := filepath.Join(c.root, name)
	require.NoError(c.t, os.MkdirAll(filepath.Dir(at), 0o755))
	require.NoError(c.t, os.WriteFile(at, []byte(text), 0o600))
}

// results is where the results are kept.
func results() string {
	return filepath.Join(os.Getenv("XDG_CACHE_HOME"), "machineadm-testenv", "results")
}

// run runs a target as CI does, and keeps what it prints.
func (c *checkout) run(target string, change ...func(*Options)) bool {
	c.t.Helper()
	ok, err := c.runWith(c.t.Context(), target, change...)
	require.NoError(c.t, err)
	return ok
}

func (c *checkout) runWith(ctx context.Context, target string, change ...func(*Options)) (bool, error) {
	c.t.Helper()
	var out strings.Builder
	o := Options{Root: c.root, Target: target, CI: true, Began: time.Now(), Out: &out}
	for _, f := range change {
		f(&o)
	}
	ok, err := Run(ctx, o)
	c.out = out.String()
	c.t.Log(c.out)
	return ok, err
}

// TestUnchanged: a package that was green runs again only when something that it read has changed, and after three runs.
func TestUnchanged(t *testing.T) {
	c := newCheckout(t, map[string]string{
		"testenv/a/a_test.go": systemTest + `
func TestNode(t *testing.T) {
	needSystem(t)
	if _, err := os.ReadFile("../../docs/page.md"); err != nil { t.Fatal(err) }
	if _, err := os.Stat("../../docs/later.md"); err == nil { t.Fatal("it is there") }
	if err := require.Record("tree", "config"); err != nil { t.Fatal(err) }
}
`, "docs/page.md": "one", "config/base/file": "one", "other/file": "one",
	})
	again := func(why string, want string) {
		t.Helper()
		require.True(t, c.run("system"), why)
		assert.Contains(t, c.out, want, why)
	}
	const ran, same = "ok  \t" + Module + "/testenv/a", "unchanged   green at"
	again("first", ran)
	assert.Contains(t, c.out, "2 passed, 0 failed, 0 skipped")
	again("the same", same)
	assert.NotContains(t, c.out, ran)
	c.write("other/file", "two")
	again("a file that no test reads", same)
	c.write("docs/page.md", "two")
	again("a file that the test read", ran)
	c.write("config/base/file", "two")
	again("a file that a program of the test read, as it recorded", ran)
	c.write("testenv/a/testdata/case", "new")
	again("a file beside the test", ran)
	for range greenRuns {
		again("the same", same)
	}
	again("green for three runs", ran)
	c.write("docs/later.md", "one")
	assert.False(t, c.run("system"), "a file that the test looked for")
	assert.Contains(t, c.out, "it is there")
	require.False(t, c.run("system"), "what failed has no green result")
}
