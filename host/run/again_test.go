package run

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// writer is a provider whose documents write the file /NAME, as the plans before leave it. reads is what a plan finds out of these files,
// by path; an error of it is an error of the plan.
func writer(w *world, reads func(name string, files map[string]string) (content string, err error)) *fakePlugin {
	p := w.add("x")
	p.able = []string{pluginv1.CapabilityFiles}
	p.answer = func(r pluginv1.Request) (pluginv1.Plan, error) {
		name, files := docName(r), map[string]string{}
		for _, f := range r.Files {
			files[f.Path] = string(f.Content)
		}
		content, err := reads(name, files)
		if err != nil || files["/"+name] == content {
			return pluginv1.Plan{}, err
		}
		plan := pluginv1.Plan{Changes: []pluginv1.Change{{ID: "file:/" + name, Summary: "write", Listed: r.ListFiles}}}
		if r.ListFiles {
			plan.Files = []pluginv1.PlannedFile{{Path: "/" + name, Content: []byte(content)}}
		}
		return plan, nil
	}
	return p
}

// TestPlansSeeEarlierOnes: a plan takes into account what earlier documents leave, and is made again only if a later one changes files.
func TestPlansSeeEarlierOnes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		documents int
		changes   string // the names of the documents that change something
		blind     bool
		plans     string
	}{
		"alone":                 {1, "a", false, "a()"},
		"two":                   {2, "ab", false, "a() b(/a) b() a(/a/b)"},
		"three":                 {3, "abc", false, "a() b(/a) b() c(/a/b) c() a(/a/b/c) b(/a/b/c)"},
		"the last changes none": {2, "a", false, "a() b(/a)"},
		"the first changes none": {
			2, "b", false,
			"a() b() a(/b)",
		},
		"converged":                {3, "", false, "a() b() c()"},
		"a plugin without files":   {2, "ab", true, "a() b()"},
		"of which one changes any": {3, "c", true, "a() b() c()"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var plans []string
			p := writer(w, func(name string, _ map[string]string) (string, error) {
				if strings.Contains(tt.changes, name) {
					return "content of " + name, nil
				}
				return "", nil
			})
			if tt.blind {
				p.able = nil
			}
			answer := p.answer
			p.answer = func(r pluginv1.Request) (pluginv1.Plan, error) {
				seen := ""
				for _, f := range r.Files {
					seen += f.Path
				}
				plans = append(plans, docName(r)+"("+seen+")")
				assert.Equal(t, tt.documents > 1 && !tt.blind, r.ListFiles)
				return answer(r)
			}
			got := w.execute(Options{Mode: ModePlan, Text: things(slices.Repeat([]string{named}, tt.documents)...)})
			assert.Contains(t, []int{report.ExitOK, report.ExitDiffers}, got.ExitCode, errorsOf(got))
			assert.Equal(t, tt.plans, strings.Join(plans, " "))
		})
	}
}

// TestPlansNameTheirCause: a change that is another, or none, without the files of an earlier document names that document.
func TestPlansNameTheirCause(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reads func(name string, files map[string]string) (string, error)
		after string // of c
	}{
		"none": {func(string, map[string]string) (string, error) { return "content", nil }, ""},
		"one":  {func(_ string, files map[string]string) (string, error) { return "beside " + files["/a"], nil }, "Thing/a"},
		"all":  {func(_ string, files map[string]string) (string, error) { return files["/a"] + files["/b"] + "x", nil }, "Thing/b"},
		"any":  {func(_ string, files map[string]string) (string, error) { return files["/b"] + "x", nil }, "Thing/b"},
		"refused": {func(name string, files map[string]string) (string, error) {
			if _, written := files["/a"]; name != "a" && !written {
				return "", precondition("a is missing")
			}
			return "content", nil
		}, "Thing/a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := writer(w, func(name string, files map[string]string) (string, error) {
				content, err := tt.reads(name, files)
				if name != "c" && err == nil {
					content = "content"
				}
				return content, err
			})
			answer := p.answer
			p.answer = func(r pluginv1.Request) (pluginv1.Plan, error) {
				plan, err := answer(r)
				for i := range plan.Changes {
					plan.Changes[i].Diff = string(plan.Files[i].Content)
				}
				return plan, err
			}
			w.execute(Options{Mode: ModePlan, Text: things(named, named, named)})
			for _, e := range w.events {
				if e.Type == EventDocumentPlanned && e.Document.Name == "c" {
					assert.Len(t, e.Planned, 1)
					assert.Equal(t, tt.after, e.Planned[0].After)
				}
			}
		})
	}
}

// TestALaterDocumentUndoesAnEarlierOne: a stream that one apply could not settle is refused before it changes anything, and both documents
// are named.
func TestALaterDocumentUndoesAnEarlierOne(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reads   func(name string, files map[string]string) (string, error)
		message string // of a; empty: the stream is in order
	}{
		"it would change again": {func(name string, files map[string]string) (string, error) {
			if _, written := files["/c"]; name == "a" && written {
				return "other", nil
			}
			return "content", nil
		}, "it would change /a again"},
		"it would be refused": {func(name string, files map[string]string) (string, error) {
			if _, written := files["/c"]; name == "a" && written {
				return "", precondition("/c overrides it")
			}
			return "content", nil
		}, "/c overrides it"},
		"it cannot tell": {func(name string, files map[string]string) (string, error) {
			if _, written := files["/c"]; name == "a" && written {
				return "", &pluginv1.Error{Code: pluginv1.CodeRetry, Message: "the network is away"}
			}
			return "content", nil
		}, ""},
		"never settled": {func(name string, files map[string]string) (string, error) {
			if name == "a" {
				return "more " + files["/a"], nil
			}
			return "content", nil
		}, ""},
	} {
		for _, mode := range []Mode{ModePlan, ModeApply} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				writer(w, tt.reads)
				got := w.execute(Options{Mode: mode, Text: things(named, named, named)})
				if tt.message == "" {
					assert.Contains(t, []int{report.ExitOK, report.ExitDiffers}, got.ExitCode, errorsOf(got))
					return
				}
				require.Equal(t, report.ExitUsage, got.ExitCode, errorsOf(got))
				assert.NotContains(t, w.lines(), "apply")
				require.Len(t, got.Errors, 2)
				for i, document := range []string{"Thing/a", "Thing/c"} {
					assert.Equal(t, []string{report.CodeConflict, document}, []string{got.Errors[i].Code, got.Errors[i].Document})
					assert.Contains(t, got.Errors[i].Message, tt.message)
				}
				assert.Contains(t, got.Errors[0].Message, "beside the later Thing/c at node.yaml:")
				assert.Contains(t, got.Errors[1].Message, "the earlier Thing/a at node.yaml:")
			})
		}
	}
}

// TestPreconditionBehindListedChanges: only what a plan does not see can cure a Precondition of it.
func TestPreconditionBehindListedChanges(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		root  string
		first pluginv1.Change
		blind bool
		final bool
	}{
		"listed":                    {"", pluginv1.Change{Listed: true}, false, true},
		"not listed":                {"", pluginv1.Change{}, false, false},
		"listed, which it ignores":  {"", pluginv1.Change{Listed: true}, true, false},
		"for first boot":            {"/image", pluginv1.Change{NeedsLive: true}, false, true},
		"for first boot, live here": {"", pluginv1.Change{NeedsLive: true}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.add("x")
			if !tt.blind {
				p.able = []string{pluginv1.CapabilityFiles}
			}
			p.answer = func(r pluginv1.Request) (pluginv1.Plan, error) {
				if docName(r) == "b" {
					return pluginv1.Plan{}, precondition("b is missing")
				}
				first := tt.first
				first.ID, first.Summary = "a", "do a"
				return pluginv1.Plan{Changes: []pluginv1.Change{first}}, nil
			}
			got := w.execute(Options{Mode: ModePlan, Root: tt.root, Text: things(named, named)})
			want := report.ExitDiffers
			if tt.final {
				want = report.ExitPrecondition
			}
			assert.Equal(t, want, got.ExitCode, errorsOf(got))
		})
	}
}
