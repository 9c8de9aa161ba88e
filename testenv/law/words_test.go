package law

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheTreeUsesNoneOfTheTerms(t *testing.T) {
	t.Parallel()
	files, err := Files(root)
	require.NoError(t, err)
	vocabulary, worded := NewVocabulary(Terms()), 0
	for _, f := range files {
		if isWorded(f) {
			worded++
		}
		for _, breach := range vocabulary.Check(f) {
			t.Error(breach)
		}
	}
	assert.Greater(t, worded, 300, "too few files were checked")
}

func TestVocabularyFindsTerms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path, text string
		want       []string
	}{
		"a comment":             {"a.go", "package a\n\n// A stray file.\n", []string{`a.go:3: "stray": write candidate`}},
		"an identifier":         {"a.go", "package a\n\nfunc isStrayFile() {}\n", []string{`a.go:3: "stray"`}},
		"an exported name":      {"a.go", "package a\n\ntype JSONVerdict int\n", []string{`a.go:3: "verdict"`}},
		"a constant":            {"a.go", "package a\n\nconst the_verdict = 1\n", []string{`a.go:3: "verdict"`}},
		"a string":              {"a.go", "package a\n\nvar s = \"how to mend it\"\n", []string{`a.go:3: "mend"`}},
		"a phrase of two lines": {"a.go", "package a\n\n// All told in the same\n// breath.\n", []string{`a.go:3: "told"`, `a.go:3: "same breath"`}},
		"the last word":         {"a.md", "a verdict", []string{`a.md:1: "verdict"`}},
		"the first word":        {"a.md", "Verdict\n", []string{`a.md:1: "verdict"`}},
		"uses on two lines":     {"a.md", "a verdict\n\nmended\n", []string{`a.md:1: "verdict"`, `a.md:3: "mended"`}},
		"a shell script":        {"a/b.sh", "# sweeps\n", []string{`a/b.sh:1: "sweeps"`}},
		"a proto file":          {"a/b.proto", "// what nobody needs\n", []string{`a/b.proto:1: "what nobody needs"`}},
		"the Makefile":          {"Makefile", "# goes on\n", []string{`Makefile:1: "goes on"`}},
		"another word":          {"a.md", "amend, recommend, ashtray and the user nobody\n", nil},
		"test data":             {"a/testdata/b.md", "a verdict\n", nil},
		"a generated page":      {"docs/reference/cli.md", "a verdict\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := NewVocabulary(Terms()).Check(File{Path: c.path, Data: []byte(c.text)})
			require.Len(t, got, len(c.want), got)
			for i := range got {
				assert.Contains(t, got[i], c.want[i])
			}
		})
	}
}

func TestVocabularyExcepts(t *testing.T) {
	t.Parallel()
	vocabulary := NewVocabulary([]Term{{Words: "undo", Instead: "roll back", Except: []Exception{
		{Path: "a/", Reason: "of an interface"}, {Phrase: "db undo log", Reason: "of a library"},
	}}})
	check := func(path, text string) int { return len(vocabulary.Check(File{Path: path, Data: []byte(text)})) }
	assert.Equal(t, 0, check("a/x.go", "// undo\n"))
	assert.Equal(t, 1, check("b/x.go", "// undo\n"))
	assert.Equal(t, 0, check("b/x.go", "// the dbUndoLog\n"))
	assert.Equal(t, 1, check("b/x.go", "// the dbUndoLog and undo\n"))
}

// TestTermsAreComplete: each has a replacement, each exception a reason.
func TestTermsAreComplete(t *testing.T) {
	t.Parallel()
	for _, term := range Terms() {
		assert.NotEmpty(t, term.Instead, term.Words)
		assert.Equal(t, strings.ToLower(term.Words), term.Words)
		for _, e := range term.Except {
			assert.NotEmpty(t, e.Path+e.Phrase, term.Words)
			assert.NotEmpty(t, e.Reason, term.Words)
		}
	}
}
