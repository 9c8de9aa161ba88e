package run

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// claiming plans one change and claims values by document: "thing=value" claims a thing.
func claiming(values map[string]string) func(context.Context, pluginv1.Request) error {
	return func(_ context.Context, r pluginv1.Request) error {
		thing, value, _ := strings.Cut(values[docName(r)], "=")
		if thing == "" {
			return nil
		}
		e := pluginv1.AsError(precondition("not yet"))
		e.Claims = []pluginv1.Claim{pluginv1.NewClaim(r.ClaimKey, thing, "spec.provider", []byte(value))}
		return e
	}
}

func TestConflicts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		values  map[string]string
		exit    int
		message string // of b
	}{
		"different values":      {map[string]string{"a": "sysctl:x=1", "b": "sysctl:x=2"}, report.ExitUsage, "sets sysctl:x to another value than Thing/a"},
		"equal values":          {map[string]string{"a": "sysctl:x=1", "b": "sysctl:x=1"}, report.ExitOK, ""},
		"whole and part":        {map[string]string{"a": "file:/x=1", "b": "file:/x#p=1,"}, report.ExitUsage, "sets a part of /x, the whole of which is set by Thing/a"},
		"part and whole":        {map[string]string{"a": "file:/x#p=1", "b": "file:/x=1,"}, report.ExitUsage, "sets the whole of /x, a part of which is set by Thing/a"},
		"whole, part gone":      {map[string]string{"a": "file:/x=absent", "b": "file:/x#p=absent"}, report.ExitOK, ""},
		"two parts":             {map[string]string{"a": "file:/x#p=1", "b": "file:/x#q=2"}, report.ExitOK, ""},
		"two files":             {map[string]string{"a": "file:/x=1", "b": "file:/x%23p=2"}, report.ExitOK, ""},
		"link and file":         {map[string]string{"a": "link:/x=1", "b": "file:/x=2"}, report.ExitUsage, "sets the file /x, where a link is set by Thing/a"},
		"part and link":         {map[string]string{"a": "file:/x#p=1", "b": "link:/x=2"}, report.ExitUsage, "sets the link /x, where a file is set by Thing/a"},
		"link, file gone":       {map[string]string{"a": "link:/x=absent", "b": "file:/x=absent"}, report.ExitOK, ""},
		"two links":             {map[string]string{"a": "link:/x=1", "b": "link:/x=2"}, report.ExitUsage, "sets link:/x to another value than Thing/a"},
		"file in its directory": {map[string]string{"a": "directory:/x=1", "b": "file:/x/y=2"}, report.ExitOK, ""},
		"different things":      {map[string]string{"a": "sysctl:x=1", "b": "sysctl:y=2"}, report.ExitOK, ""},
	} {
		for _, mode := range []Mode{ModeValidate, ModePlan, ModeApply} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				p := w.add("x")
				p.plan = func(name string, _ int) (pluginv1.Plan, error) {
					thing, value, _ := strings.Cut(tt.values[name], "=")
					plan := oneChange()
					plan.Claims = []pluginv1.Claim{{ID: thing, Digest: []byte(value), Field: "spec.provider"}}
					return plan, nil
				}
				got := w.execute(Options{Mode: mode, Text: things(named, "{provider: x}")})
				if tt.exit == report.ExitOK {
					assert.Contains(t, []int{report.ExitOK, report.ExitDiffers}, got.ExitCode)
					return
				}
				require.Equal(t, tt.exit, got.ExitCode)
				assert.Equal(t, "Failed Failed", outcomes(got))
				assert.NotContains(t, w.lines(), "apply")
				require.Len(t, got.Errors, 2)
				assert.Equal(t, report.CodeConflict, got.Errors[0].Code)
				assert.Equal(t, []any{"Thing/a", 5}, []any{got.Errors[0].Document, got.Errors[0].Line})
				assert.Equal(t, []any{"Thing/b", 10}, []any{got.Errors[1].Document, got.Errors[1].Line})
				assert.Contains(t, got.Errors[1].Message, tt.message+" at node.yaml:5:")
			})
		}
	}
}

// TestConflictAtATurn: a pending document has claims only at its turn.
// TestAssumptions: a value that a document does not ask for is no contradiction, but a warning at its field; what others ask for comes first.
func TestAssumptions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		values map[string]string // by document; ? is assumed
		want   map[string]string // by document: the other one of the warning
	}{
		"equal":         {map[string]string{"a": "1?", "b": "1"}, nil},
		"assumed first": {map[string]string{"a": "1?", "b": "2"}, map[string]string{"a": "in Thing/b at "}},
		"assumed last":  {map[string]string{"a": "1", "b": "2?"}, map[string]string{"b": "in Thing/a at "}},
		"both":          {map[string]string{"a": "1?", "b": "2?"}, map[string]string{"b": "without spec.x in Thing/a at "}},
		"of three":      {map[string]string{"a": "1?", "b": "2?", "c": "2"}, map[string]string{"a": "in Thing/c at "}},
		"alone":         {map[string]string{"a": "1?"}, nil},
	} {
		for _, mode := range []Mode{ModeValidate, ModePlan, ModeApply} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.add("x").plan = func(name string, _ int) (pluginv1.Plan, error) {
					plan := oneChange()
					if value, assumed := strings.CutSuffix(tt.values[name], "?"); value != "" {
						plan.Claims = []pluginv1.Claim{{ID: "node:x", Digest: []byte(value), Field: "spec.x", Assumed: assumed}}
					}
					return plan, nil
				}
				got := w.execute(Options{Mode: mode, Text: things(named, named, named)})
				require.Contains(t, []int{report.ExitOK, report.ExitDiffers}, got.ExitCode, errorsOf(got))
				for _, d := range got.Documents {
					warnings := strings.Join(d.Warnings, "\n")
					assert.Equal(t, tt.want[d.Name] != "", strings.Contains(warnings, "spec.x: as long as it is not set, node:x has another value than "), warnings)
					assert.Contains(t, warnings, tt.want[d.Name])
				}
			})
		}
	}
}

func TestConflictAtATurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x").plan = func(name string, calls int) (pluginv1.Plan, error) {
		plan := oneChange()
		plan.Claims = []pluginv1.Claim{{ID: "file:/etc/x", Digest: []byte(name)}}
		if name == "b" && calls == 1 {
			return pluginv1.Plan{}, precondition("a is missing")
		}
		return plan, nil
	}
	got := w.execute(Options{Mode: ModeApply, Text: things(named, named, named)})
	assert.Equal(t, report.ExitUsage, got.ExitCode, "a and c are known to differ before")
	got = w.execute(Options{Mode: ModeApply, Text: things(named)})
	require.Equal(t, report.ExitOK, got.ExitCode)

	w = newWorld(t)
	w.add("x").plan = func(name string, calls int) (pluginv1.Plan, error) {
		plan := oneChange()
		plan.Claims = []pluginv1.Claim{{ID: "file:/etc/x", Digest: []byte(name)}}
		if name == "b" && calls == 1 {
			return pluginv1.Plan{}, precondition("a is missing")
		}
		return plan, nil
	}
	got = w.execute(Options{Mode: ModeApply, Text: things(named, named)})
	assert.Equal(t, report.ExitFailed, got.ExitCode)
	assert.Equal(t, "Changed Failed", outcomes(got))
	assert.Contains(t, errorsOf(got), "Conflict: sets file:/etc/x to another value than Thing/a")
	assert.NotContains(t, w.lines(), "apply b")
	assert.Equal(t, []string{"/etc/x"}, w.writes, "what is written is recorded before")
}

// TestConflictOfAPendingDocument: the claims of a Precondition are compared before any change.
func TestConflictOfAPendingDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.add("x")
	p.onPlan = func(ctx context.Context, r pluginv1.Request) error {
		if docName(r) == "a" {
			return nil
		}
		return claiming(map[string]string{"b": "file:/etc/x=1", "c": "file:/etc/x=2"})(ctx, r)
	}
	got := w.execute(Options{Mode: ModeApply, Text: things(named, named, named)})
	assert.Equal(t, report.ExitUsage, got.ExitCode, errorsOf(got))
	assert.NotContains(t, w.lines(), "apply")
}

// TestConflictOfARefusedDocument: a final Precondition and a conflict are both reported.
func TestConflictOfARefusedDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x").onPlan = func(ctx context.Context, r pluginv1.Request) error {
		err := claiming(map[string]string{"a": "file:/etc/x=1", "b": "file:/etc/x=2"})(ctx, r)
		pluginv1.AsError(err).Final = true
		return err
	}
	got := w.execute(Options{Mode: ModeApply, Text: things(named, named)})
	assert.Equal(t, report.ExitUsage, got.ExitCode)
	assert.Equal(t, "Failed Failed", outcomes(got))
	assert.Equal(t, 2, strings.Count(errorsOf(got), "Conflict: "), errorsOf(got))
	assert.Equal(t, 2, strings.Count(errorsOf(got), "Precondition: not yet"), errorsOf(got))
}
