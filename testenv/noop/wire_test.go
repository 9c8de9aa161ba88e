package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
)

// unchanged fails when a file of the image is there.
func (b *bench) unchanged(files ...string) {
	b.t.Helper()
	for _, file := range files {
		assert.NoFileExists(b.t, filepath.Join(b.root, file))
	}
}

func TestConflictOfClaims(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]spec{
		"of two plans":                   {Touch: []string{"b"}},
		"of a plan and a pending one":    {Plan: "precondition", ClaimEarly: true},
		"of a plan and one that cannot":  {Plan: "precondition", ClaimEarly: true, Final: true},
		"of a plan and one tried later":  {Plan: "retry", ClaimEarly: true},
		"of one that the document wrote": {Touch: []string{"b"}, Claims: map[string]string{"file:/a": "c4n4ry"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.install(binary, script{})
			first := spec{Touch: []string{"a"}, Claims: map[string]string{"thing:x": "one", "file:/a": "x"}}
			if second.Claims == nil {
				second.Claims = map[string]string{"thing:x": "c4n4ry", "thing:y": "one"}
			}
			path := b.stream(doc("a", first) + doc("b", second))
			for _, args := range [][]string{{"validate"}, {"plan", "--root", b.root}, {"apply", "--root", b.root}} {
				got := b.host(append(args, "--path", path)...)
				require.Equal(t, report.ExitUsage, got.code, "%s: %s", args[0], got)
				assert.Contains(t, got.stderr, "stream.yaml:5:", "the first document")
				assert.Contains(t, got.stderr, "Noop/b: spec.claims: sets ")
				assert.Contains(t, got.stderr, " to another value than ")
				assert.NotContains(t, got.stdout+got.stderr, "c4n4ry", "a value that is claimed")
			}
			b.unchanged("a", "b")
		})
	}
}

func TestClaimsThatAgree(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.install(binary, script{})
	one := map[string]string{"thing:x": "one"}
	got := b.apply(doc("a", spec{Touch: []string{"a"}, Claims: one}) + doc("b", spec{Touch: []string{"b"}, Claims: one}))
	require.Equal(t, report.ExitOK, got.code, "%s", got)
	got = b.apply(doc("a", spec{Touch: []string{"c"}, Claims: one}) +
		doc("b", spec{Plan: "precondition", PlanUntil: "c", Claims: map[string]string{"thing:x": "two"}}))
	assert.Equal(t, report.ExitFailed, got.code, "a claim that the document's turn shows comes too late for exit 2: %s", got)
	assert.Equal(t, report.CodeConflict, got.report.Errors[0].Code)
}

func TestFactsOfAnError(t *testing.T) {
	t.Parallel()
	facts := map[string]string{"exitCode": "1", "phase": "preflight"}
	for name, tt := range map[string]spec{
		"of Plan":  {Plan: "precondition", Facts: facts},
		"of Apply": {Touch: []string{"a"}, Apply: "fail", Facts: facts},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.install(binary, script{})
			got := b.apply(doc("a", tt), "-o", "json")
			require.Equal(t, report.ExitPrecondition, got.code, "%s", got)
			assert.Equal(t, facts, got.report.Errors[0].Facts, "in report.json")
			var last struct {
				Report report.Report
			}
			events := strings.Split(strings.TrimSpace(got.stdout), "\n")
			require.NoError(t, json.Unmarshal([]byte(events[len(events)-1]), &last))
			assert.Equal(t, facts, last.Report.Errors[0].Facts, "in the last event")
		})
	}
}

func TestFinalPrecondition(t *testing.T) {
	t.Parallel()
	first := doc("a", spec{Touch: []string{"a"}})
	for name, tt := range map[string]struct {
		spec  spec
		plan  int
		apply int
		made  bool
	}{
		"final":                        {spec{Plan: "precondition", Final: true}, report.ExitPrecondition, report.ExitPrecondition, false},
		"not final":                    {spec{Plan: "precondition"}, report.ExitDiffers, report.ExitPrecondition, true},
		"not final, and met meanwhile": {spec{Plan: "precondition", PlanUntil: "a"}, report.ExitDiffers, report.ExitOK, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.install(binary, script{})
			path := b.stream(first + doc("b", tt.spec))
			got := b.host("plan", "--root", b.root, "--path", path)
			require.Equal(t, tt.plan, got.code, "%s", got)
			got = b.host("apply", "--root", b.root, "--path", path)
			require.Equal(t, tt.apply, got.code, "%s", got)
			_, err := os.Stat(filepath.Join(b.root, "a"))
			assert.Equal(t, tt.made, err == nil, "the first document was applied")
		})
	}
	t.Run("not final behind a document that changes nothing", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.install(binary, script{})
		require.NoError(t, os.WriteFile(filepath.Join(b.root, "a"), nil, 0o600))
		got := b.apply(first + doc("b", spec{Plan: "precondition"}) + doc("c", spec{Touch: []string{"c"}}))
		assert.Equal(t, report.ExitPrecondition, got.code, "%s", got)
		b.unchanged("c")
	})
}

func TestDistributionsRankProviders(t *testing.T) {
	t.Parallel()
	stream := "apiVersion: example.com/v1\nkind: Noop\nmetadata: {name: a}\nspec: {}\n"
	for release, want := range map[string]string{
		"ID=ubuntu\nID_LIKE=debian\n": "ubuntu",
		"ID=mint\nID_LIKE=debian\n":   "debian",
		"ID=fedora\n":                 "any",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			require.NoError(t, os.MkdirAll(filepath.Join(b.root, "etc"), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(b.root, "etc/os-release"), []byte(release), 0o600))
			b.install("machineadm-noop-plugin-any", script{})
			b.install("machineadm-noop-plugin-debian", script{Distributions: []string{"debian"}})
			b.install("machineadm-noop-plugin-ubuntu", script{Distributions: []string{"ubuntu", "kubuntu"}})
			got := b.apply(stream)
			require.Equal(t, report.ExitOK, got.code, "%s", got)
			assert.Equal(t, want, got.report.Documents[0].Provider)
		})
	}
}
