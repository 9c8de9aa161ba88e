package spec

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// small is a text without a fault; each case below breaks it in one place.
const small = `# Title

Words about it.

## 1 Terms (T)

- **T-1** A *thing* is a thing.

## 2 Rules (R)

- **R-1** It MUST be so, see sysctl.d(5).
  And it stays so ("always").
- **R-2** It waits for 10 s and MAY take 1,024 bytes.
- **R-3** Reserved: it flies.
- **R-4** Withdrawn: it swims.

| value | is |
|---|---|
| ten | 10 |

` + "```text\nNot a sentence\n```" + `

## 3 Values

| value | is | clauses |
|---|---|---|
| wait | 10 s | R-2 |
| bytes | 1,024 bytes | R-2 |
`

// smallEvidence belongs to small and has no fault either.
const smallEvidence = `{
  "T-1": {
    "review": "a definition."
  },
  "R-1": {
    "tests": [
      "a/b TestOne",
      "a/b TestTwo/a case, with a comma"
    ],
    "review": "the rest is obvious."
  },
  "R-2": {
    "tests": [
      "a/b FuzzThree"
    ]
  },
  "R-3": {
    "review": "not built."
  },
  "R-4": {
    "review": "a note."
  }
}
`

func files(pkg string) ([]TestFile, error) {
	if pkg != "a/b" {
		return nil, errors.New("there is no package " + pkg)
	}
	set := func(names ...string) map[string]bool {
		out := map[string]bool{}
		for _, n := range names {
			out[n] = true
		}
		return out
	}
	return []TestFile{
		{Functions: set("TestOne", "FuzzThree"), Texts: set("another case")},
		{Functions: set("TestTwo"), Texts: set("a case, with a comma")},
	}, nil
}

func problemsOf(text, evidenceText string) []string {
	s, problems := Parse(text)
	values := s.TableRows("3 Values", "value|is|clauses")
	evidence, err := ParseEvidence([]byte(evidenceText))
	if err != nil {
		return []string{err.Error()}
	}
	if formatted, err := FormatEvidence(s, evidence); err != nil || formatted != evidenceText {
		problems = append(problems, "not in order")
	}
	for _, more := range [][]string{
		Numbers(s), Held(s, evidence), Tests(evidence, files), Sentences(s, evidence), Words(s, evidence), Used(s, values),
		Same("values", values, [][]string{{"wait", "10 s"}, {"bytes", "1,024 bytes"}}),
	} {
		problems = append(problems, more...)
	}
	return problems
}

func TestEveryCheckCanFail(t *testing.T) {
	t.Parallel()
	if problems := problemsOf(small, smallEvidence); len(problems) > 0 {
		t.Fatalf("the text without a fault has some: %q", problems)
	}
	for name, c := range map[string]struct{ old, replacement, want string }{
		"a number twice":                   {"**R-2**", "**R-1**", "R-1, want R-2"},
		"a gap":                            {"**R-2**", "**R-5**", "R-5, want R-2"},
		"another section":                  {"**R-1**", "**S-1**", `S-1 stands in section "R"`},
		"behind its section":               {"- **R-2**", "- **T-2** It is.\n- **R-2**", "T-2 comes after its section"},
		"reserved, and obliging":           {"it flies", "it MUST fly", "R-3 is not in force and obliges"},
		"two sentences in prose":           {"Words about it.", "Words. About it.", "two sentences"},
		"two sentences in a clause":        {"And it stays so", "And it stays. So", "two sentences"},
		"a sentence over two lines":        {"Words about it.", "Words\nabout it.", "does not end: Words"},
		"a clause that does not end":       {`("always").`, `("always")`, "does not end: And it"},
		"a word in prose":                  {"Words about it.", "Words MUST be.", "MUST outside of a clause"},
		"a word in a table":                {"| ten | 10 |", "| ten | OPTIONAL |", "OPTIONAL outside of a clause"},
		"a word in code":                   {"Not a sentence", "It SHALL be", "SHALL outside of a clause"},
		"a word in a heading":              {"# Title", "# What SHOULD be", "SHOULD outside of a clause"},
		"a clause that obliges nobody":     {"It MUST be so", "It is so", "R-1 obliges nobody"},
		"small letters":                    {"It MUST be so", "It MUST be so and must stay so", `R-1 says "must"`},
		"another word":                     {"It MUST be so", "It MUST be so, and SHALL", `R-1 says "SHALL"`},
		"a list that is no clause":         {"- **R-2** It", "- It", "neither prose nor a clause"},
		"another value in the table":       {"| wait | 10 s |", "| wait | 11 s |", `values: got ["wait" "11 s" "R-2"], want ["wait" "10 s"]`},
		"another value in the clause":      {"for 10 s and", "for 110 s and", "R-2 does not say 10 s"},
		"a longer value in the clause":     {"take 1,024 bytes", "take 11,024 bytes", "R-2 does not say 1,024 bytes"},
		"a value that is missing":          {"| wait | 10 s | R-2 |\n", "", `"wait" is missing`},
		"a value too many":                 {"| wait |", "| more | 1 | R-2 |\n| wait |", `"more" is not in the code`},
		"a value twice":                    {"| bytes |", "| wait | 10 s | R-2 |\n| bytes |", `"wait" is there twice`},
		"values in another order":          {"| wait | 10 s | R-2 |\n| bytes | 1,024 bytes | R-2 |", "| bytes | 1,024 bytes | R-2 |\n| wait | 10 s | R-2 |", `"wait" is not where it belongs`},
		"a value of a clause that is none": {"| 10 s | R-2 |", "| 10 s | R-9 |", "names R-9, which is not there"},
		"a value without clauses":          {"| 10 s | R-2 |", "| 10 s |", "has no clauses"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.Count(small, c.old) != 1 {
				t.Fatalf("%q is there %d times", c.old, strings.Count(small, c.old))
			}
			problems := problemsOf(strings.Replace(small, c.old, c.replacement, 1), smallEvidence)
			if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, c.want) }) {
				t.Errorf("problems %q, want %q", problems, c.want)
			}
		})
	}
}

func TestEveryCheckOfTheEvidenceCanFail(t *testing.T) {
	t.Parallel()
	const definition = "  \"T-1\": {\n    \"review\": \"a definition.\"\n  },\n"
	for name, c := range map[string]struct{ old, replacement, want string }{
		"no evidence":               {definition, "", "T-1 names neither a test nor a review"},
		"empty evidence":            {`"review": "a definition."`, "", "T-1 names neither a test nor a review"},
		"an unknown clause":         {`"T-1"`, `"T-9"`, "T-9 is no clause"},
		"a clause twice":            {definition, definition + definition, "not in order"},
		"another order":             {definition, "", "not in order"},
		"a field of another name":   {`"review": "a def`, `"reviews": "a def`, "unknown field"},
		"reserved, with a test":     {`"review": "not built."`, `"tests": ["a/b TestOne"]`, "R-3 is not in force: a review"},
		"withdrawn, with a test":    {`"review": "a note."`, `"tests": ["a/b TestOne"], "review": "a note."`, "R-4 is not in force: a review"},
		"no such package":           {"a/b TestOne", "a/c TestOne", "there is no package a/c"},
		"no such test":              {"a/b TestOne", "a/b TestFour", "there is no test a/b TestFour"},
		"no such case":              {"a case,", "no case,", "has no case of that name"},
		"a case of another file":    {"TestTwo/a case, with a comma", "TestTwo/another case", "has no case of that name"},
		"a test twice":              {`"a/b FuzzThree"`, `"a/b FuzzThree", "a/b FuzzThree"`, "R-2 names a/b FuzzThree twice"},
		"a test without a package":  {"a/b TestOne", "TestOne", "R-1: not a package and a test"},
		"two sentences in a review": {"the rest is obvious", "the rest is. Obvious", "the review of R-1: two sentences"},
		"a word in a review":        {"the rest is obvious", "the rest MAY be", "MAY in a review"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, 1, strings.Count(smallEvidence, c.old))
			problems := problemsOf(small, strings.Replace(smallEvidence, c.old, c.replacement, 1))
			assert.Contains(t, strings.Join(problems, "\n"), c.want)
		})
	}
}

// TestReviewPage: the page has the clauses in force about plugins that no check names.
func TestReviewPage(t *testing.T) {
	t.Parallel()
	s, problems := Parse("## 1 Duties (G)\n\n- **G-1** It MUST a|b, see [x](y).\n  It stays.\n- **G-2** It MUST c.\n- **G-3** It MUST d.\n" +
		"- **G-4** Withdrawn: it did.\n\n## 2 Runtime (R)\n\n- **R-1** It MUST e.\n")
	require.Empty(t, problems)
	page := ReviewPage(s, map[string]Evidence{"G-3": {Runtime: true}}, []string{"P-1, G-2"})
	assert.Equal(t, "| G-1 | It MUST a\\|b, see [x](../../contract/y). It stays. |\n", page[strings.Index(page, "|---|---|\n")+len("|---|---|\n"):])
}

func TestParse(t *testing.T) {
	t.Parallel()
	s, problems := Parse(small)
	if len(problems) > 0 || len(s.Clauses) != 5 {
		t.Fatalf("%d clauses, problems %q", len(s.Clauses), problems)
	}
	c := s.Clauses[1]
	if c.ID != "R-1" || c.Section != "R" || c.Line != 11 || len(c.Text) != 2 {
		t.Errorf("clause %+v", c)
	}
	if rows := s.TableRows("2 Rules (R)", "value|is"); len(rows) != 1 || strings.Join(rows[0], " ") != "ten 10" {
		t.Errorf("rows %q", rows)
	}
	if rows := s.TableRows("2 Rules (R)", "value|was"); rows != nil {
		t.Errorf("rows of a table that is not there: %q", rows)
	}
}

// TestSource reads this package and others, whose constants are known.
func TestSource(t *testing.T) {
	t.Parallel()
	s := Source{Root: root}
	all, err := s.TestFiles("testenv/spec")
	if err != nil {
		t.Fatal(err)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(all, func(f TestFile) bool { return f.Functions[name] })
	}
	if !has("TestSource") || has("TestMain") || has("files") || has("Parse") {
		t.Errorf("test files %+v", all)
	}
	for name, want := range map[string]bool{
		"Test": true, "TestA": true, "Test_a": true, "FuzzA": true, "Example": true, "ExampleA": true,
		"Testa": false, "TestMain": false, "BenchmarkA": false, "helper": false,
	} {
		if isTest(name) != want {
			t.Errorf("%s is a test: %v, want %v", name, !want, want)
		}
	}
	if n, err := s.Number("contract/document", "MaxDepth"); err != nil || n != 64 {
		t.Errorf("a number: %d %v", n, err)
	}
	if _, err := s.Number("contract/document", "NoSuchName"); err == nil {
		t.Error("a constant that is not there has a value")
	}
	if _, err := s.Number("contract/v1alpha1", "Group"); err == nil {
		t.Error("a text is a number")
	}
	if _, err := s.Text("contract/document", ".go", "NoSuchName"); err == nil {
		t.Error("a text that is not there has a value")
	}
	if _, err := s.TestFiles("contract/nothing"); err == nil {
		t.Error("a package that is not there has tests")
	}
}
