package suite

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// flakyTest fails when a file is not there, and makes it.
const flakyTest = systemTest + `
func TestFlaky(t *testing.T) {
	needSystem(t)
	if _, err := os.Stat(os.Getenv("FLAKY")); err != nil {
		if err := os.WriteFile(os.Getenv("FLAKY"), nil, 0o600); err != nil { t.Fatal(err) }
		t.Fatal("the first try")
	}
}
`

// TestFlaky: a package that fails runs once more, with what has not passed. The same test twice in five runs is a failure.
func TestFlaky(t *testing.T) {
	c := newCheckout(t, map[string]string{"testenv/a/a_test.go": flakyTest})
	file := filepath.Join(t.TempDir(), "tried")
	t.Setenv("FLAKY", file)
	require.True(t, c.run("system"))
	assert.Contains(t, c.out, "FLAKY testenv/a TestFlaky: the second try passed")
	assert.Contains(t, c.out, "the first try", "the output of the failure is shown")
	assert.Contains(t, c.out, "Flaky: the second try passed:\n  testenv/a TestFlaky\n")
	require.True(t, c.run("system"))
	assert.NotContains(t, c.out, "unchanged", "a flaky package has no green result")
	require.NoError(t, os.Remove(file))
	c.write("testenv/a/testdata/case", "new")
	assert.False(t, c.run("system"))
	assert.Contains(t, c.out, "testenv/a TestFlaky was flaky twice in 5 runs: cure it")
	c.write("testenv/a/testdata/case", "newer")
	for range flakyRuns {
		require.True(t, c.run("system"))
	}
	c.write("testenv/a/testdata/case", "newest")
	require.NoError(t, os.Remove(file))
	assert.True(t, c.run("system"), "five runs later it is forgotten")
}

// TestNoSecondTry: what fails twice fails, by hand it fails at once, and the product is never tried again.
func TestNoSecondTry(t *testing.T) {
	c := newCheckout(t, map[string]string{
		"testenv/a/a_test.go": systemTest + `
func TestBroken(t *testing.T) { needSystem(t); if _, err := os.Stat("/nowhere/at/all"); err != nil { t.Fatal("broken") } }
`,
		"sdk/a_test.go": "package sdk\n\nimport \"testing\"\n\nfunc TestBroken(t *testing.T) { t.Fatal(\"broken\") }\n",
	})
	assert.False(t, c.run("system"))
	assert.Equal(t, 1, strings.Count(c.out, "is tried once more"), c.out)
	assert.Contains(t, c.out, "Failed:\n  "+Module+"/testenv/a: TestBroken\n")
	assert.Contains(t, c.out, "0 passed, 1 failed, 0 skipped")
	assert.False(t, c.run("system", func(o *Options) { o.CI = false }))
	assert.NotContains(t, c.out, "is tried once more")
	assert.False(t, c.run(fast))
	assert.NotContains(t, c.out, "is tried once more")
	assert.Contains(t, c.out, "\n1 passed, 1 failed, 1 skipped\n")
	c.write("sdk/a_test.go", "package sdk\n\nfunc TestBroken(\n")
	assert.False(t, c.run(fast))
	assert.Contains(t, c.out, "sdk: the package as a whole", "what does not compile")
}

// TestBudget: no package starts after its limit, and what runs at the end is ended. The fourth time in a row is a failure.
func TestBudget(t *testing.T) {
	c := newCheckout(t, map[string]string{
		"testenv/a/a_test.go": systemTest + `
//CORE
func TestQuick(t *testing.T) { needSystem(t) }

func TestSlow(t *testing.T) {
	needSystem(t)
	if os.Getenv("SLOW") != "" { <-t.Context().Done() }
}
`, "testenv/b/b_test.go": "//ALONE\n" + systemTest + "func TestSystem(t *testing.T) { needSystem(t); _ = os.Args }\n",
		"testenv/c/c_test.go": "//ALONE\n" + systemTest + "func TestSystem(t *testing.T) { needSystem(t); _ = os.Args }\n",
	})
	t.Setenv("SLOW", "1")
	// How long the core test takes to compile depends on the machine.
	for limit := 8 * time.Second; ; limit *= 2 {
		require.NoError(t, os.RemoveAll(results()))
		require.True(t, c.run("system", func(o *Options) { o.LastStart, o.End = limit, limit }))
		if strings.Contains(c.out, "\tcore tests\n") && strings.Contains(c.out, "ended before it was done") {
			break
		}
		require.Less(t, limit, 5*time.Minute, "core tests come before the whole of any package")
	}
	assert.Contains(t, c.out, "testenv/a                    no time     ended before it was done; 1 in a row")
	assert.Contains(t, c.out, "testenv/b                    no time     no time to start it; 1 in a row", "it runs alone, behind the other")
	late := func(o *Options) { o.LastStart, o.End = time.Nanosecond, time.Hour }
	for range lateRuns - 1 {
		require.True(t, c.run("system", late))
	}
	assert.Contains(t, c.out, "no time     no time to start it; 3 in a row")
	assert.False(t, c.run("system", late))
	assert.Contains(t, c.out, "No time for the fourth time in a row:\n  testenv/a\n  testenv/b\n  testenv/c\n")
	t.Setenv("SLOW", "")
	require.True(t, c.run("system"))
	assert.Contains(t, c.out, "ok  \t"+Module+"/testenv/a")
	require.True(t, c.run("system", late), "nothing has to start")
}

// TestRanOut: tests that go test stops, because the run is at its end, are no failure; those that take longer than any may are one.
func TestRanOut(t *testing.T) {
	c := newCheckout(t, map[string]string{
		"testenv/a/a_test.go": systemTest + `
func TestSlow(t *testing.T) {
	needSystem(t)
	os.Stdout.WriteString("panic: test timed out after 1s\n") // as the package testing does it
	os.Exit(2)
}
`,
	})
	require.True(t, c.run("system", func(o *Options) { o.LastStart, o.End = time.Hour, time.Hour }), c.out)
	assert.Contains(t, c.out, "testenv/a                    no time     ended before it was done; 1 in a row")
	assert.Contains(t, c.out, "panic: test timed out after 1s", "where it was")
	assert.NotContains(t, c.out, "tried once more")
	assert.False(t, c.run("system", func(o *Options) { o.LastStart, o.End = 2*time.Hour, 2*time.Hour }))
	assert.Contains(t, c.out, "FAIL")
}

// TestOrder: what earlier runs had no time for comes before all that did not fail, also a package that runs alone.
func TestOrder(t *testing.T) {
	ran := time.Now()
	records := map[string]record{
		"failed":     {At: ran, Seconds: 1, Failed: true},
		"late twice": {At: ran, Seconds: 1, Late: 2},
		"late":       {At: ran, Seconds: 9, Late: 1},
		"never ran":  {},
		"long":       {At: ran, Seconds: 2000},
		"short":      {At: ran, Seconds: 1},
		"alone":      {At: ran, Seconds: 3000},
	}
	s := schedule{state: map[string]*progress{}}
	var jobs []job
	for name, r := range records {
		s.state[name] = &progress{record: r}
		jobs = append(jobs, job{pkg: Package{Dir: name, Alone: name == "late twice" || name == "alone"}})
	}
	slices.SortFunc(jobs, s.order)
	var order []string
	for _, j := range jobs {
		order = append(order, j.pkg.Dir)
	}
	assert.Equal(t, []string{"failed", "late twice", "late", "never ran", "long", "short", "alone"}, order)
}

// TestInterrupted: a signal ends what runs, and nothing that was cut off counts.
func TestInterrupted(t *testing.T) {
	c := newCheckout(t, map[string]string{
		"testenv/a/a_test.go": systemTest + `
func TestSlow(t *testing.T) {
	needSystem(t)
	if err := os.WriteFile(os.Getenv("STARTED"), nil, 0o600); err != nil { t.Fatal(err) }
	if os.Getenv("SLOW") != "" { <-t.Context().Done() }
}
`, "testenv/b/b_test.go": "//ALONE\n" + systemTest + "func TestSystem(t *testing.T) { needSystem(t); _ = os.Args }\n",
		"testenv/c/c_test.go": "//ALONE\n" + systemTest + "//CORE\nfunc TestSystem(t *testing.T) { needSystem(t); _ = os.Args }\n",
	})
	started := filepath.Join(t.TempDir(), "started")
	t.Setenv("STARTED", started)
	t.Setenv("SLOW", "1")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(started); err == nil {
				cancel()
			}
		}
	}()
	ok, err := c.runWith(ctx, "system")
	assert.False(t, ok)
	require.ErrorContains(t, err, "interrupted")
	assert.NotContains(t, c.out, "no time", "a signal is no lack of time")
	t.Setenv("SLOW", "")
	require.True(t, c.run("system"))
	assert.NotContains(t, c.out, "unchanged")
}

// TestResultsThatCannotBeKept: a full disk, or a file that is cut, costs a run again and nothing else.
func TestResultsThatCannotBeKept(t *testing.T) {
	c := newCheckout(t, map[string]string{"testenv/a/a_test.go": systemTest + "func TestSystem(t *testing.T) { needSystem(t); _ = os.Args }\n"})
	require.NoError(t, os.MkdirAll(filepath.Dir(results()), 0o700))
	require.NoError(t, os.WriteFile(results(), nil, 0o600))
	require.True(t, c.run("system"))
	assert.Contains(t, c.out, "the result of testenv/a is not kept: ")
	require.NoError(t, os.Remove(results()))
	require.True(t, c.run("system"))
	require.NoError(t, os.WriteFile(filepath.Join(results(), "testenv-a.json"), []byte(`{"green": "0`), 0o600))
	require.True(t, c.run("system"))
	assert.NotContains(t, c.out, "unchanged")
	require.True(t, c.run("system"))
	assert.Contains(t, c.out, "unchanged")
}

// TestMissing: a run without a prerequisite leaves no green result. What make test passed does not run again in the slow tiers.
func TestMissing(t *testing.T) {
	c := newCheckout(t, map[string]string{"testenv/a/a_test.go": systemTest + `
func TestSystem(t *testing.T) {
	t.Run("part", func(t *testing.T) {
		needSystem(t)
		if os.Getenv("MISSING") != "" { require.Missing(t, "needs a thing") }
	})
}
`})
	t.Setenv("MISSING", "1")
	t.Setenv("CI", "")
	require.True(t, c.run("system"))
	assert.Contains(t, c.out, "   1  needs a thing")
	t.Setenv("MISSING", "")
	passed := func(o *Options) { o.Passed = filepath.Join(c.root, "passed") }
	require.True(t, c.run(fast, passed))
	assert.Contains(t, c.out, "make test-system       booted nodes")
	require.True(t, c.run("system", passed))
	assert.NotContains(t, c.out, "unchanged")
	assert.Contains(t, c.out, "2 passed, 0 failed", "the test with a part that was skipped, not the other")
	require.True(t, c.run("system"))
	assert.Contains(t, c.out, "unchanged")
}
