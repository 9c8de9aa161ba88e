package spec

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// small is a text without a fault; each case below spoils it in one place.
const small = `# Title

Words about it.

## 1 Terms (T)

- **T-1** A *thing* is a thing.
  review: a definition.

## 2 Rules (R)

- **R-1** It MUST be so, see sysctl.d(5).
  And it stays so ("always").
  test: ` + "`a/b TestOne`, `a/b TestTwo/a case, with a comma`" + `
  review: the rest is obvious.
- **R-2** It waits for 10 s and MAY take 1,024 bytes.
  test: ` + "`a/b FuzzThree`" + `
- **R-3** Reserved: it flies.
  review: not built.

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

func problemsOf(text string) []string {
	s, problems := Parse(text)
	values := s.TableRows("3 Values", "value|is|clauses")
	for _, more := range [][]string{
		Numbers(s), Held(s), Tests(s, files), Sentences(s), Words(s), Used(s, values),
		Same("values", values, [][]string{{"wait", "10 s"}, {"bytes", "1,024 bytes"}}),
	} {
		problems = append(problems, more...)
	}
	return problems
}

func TestEveryCheckCanFail(t *testing.T) {
	t.Parallel()
	if problems := problemsOf(small); len(problems) > 0 {
		t.Fatalf("the text without a fault has some: %q", problems)
	}
	for name, c := range map[string]struct{ old, replacement, want string }{
		"a number twice":                   {"**R-2**", "**R-1**", "R-1, want R-2"},
		"a gap":                            {"**R-2**", "**R-4**", "R-4, want R-2"},
		"another section":                  {"**R-1**", "**S-1**", `S-1 stands in section "R"`},
		"behind its section":               {"- **R-2**", "- **T-2** It is.\n  review: so.\n- **R-2**", "T-2 comes after its section"},
		"nothing holds it":                 {"  review: a definition.\n", "", "T-1 names neither a test nor a review"},
		"two reviews":                      {"  review: a definition.", "  review: a definition.\n  review: another.", "T-1 has two reviews"},
		"reserved, with a test":            {"  review: not built.", "  test: `a/b TestOne`\n  review: not built.", "R-3 is reserved: a review says why"},
		"reserved, and obliging":           {"it flies", "it MUST fly", "R-3 is reserved and obliges"},
		"no such package":                  {"`a/b TestOne`", "`a/c TestOne`", "there is no package a/c"},
		"no such test":                     {"TestOne", "TestFour", "there is no test a/b TestFour"},
		"no such case":                     {"a case,", "no case,", "has no case of that name"},
		"a case of another file":           {"TestTwo/a case, with a comma", "TestTwo/another case", "has no case of that name"},
		"a test twice":                     {"`a/b FuzzThree`", "`a/b FuzzThree`, `a/b FuzzThree`", "R-2 names a/b FuzzThree twice"},
		"tests without grave accents":      {"`a/b FuzzThree`", "a/b FuzzThree", "not a list of"},
		"tests without a comma":            {"`a/b TestOne`, ", "`a/b TestOne` ", "not a list of"},
		"a test without a package":         {"`a/b TestOne`", "`TestOne`", "not a list of"},
		"two sentences in prose":           {"Words about it.", "Words. About it.", "two sentences"},
		"two sentences in a clause":        {"And it stays so", "And it stays. So", "two sentences"},
		"two sentences in a review":        {"the rest is obvious", "the rest is. Obvious", "two sentences"},
		"a sentence over two lines":        {"Words about it.", "Words\nabout it.", "does not end: Words"},
		"a clause that does not end":       {`("always").`, `("always")`, "does not end: And it"},
		"a word in prose":                  {"Words about it.", "Words MUST be.", "MUST outside of a clause"},
		"a word in a table":                {"| ten | 10 |", "| ten | OPTIONAL |", "OPTIONAL outside of a clause"},
		"a word in code":                   {"Not a sentence", "It SHALL be", "SHALL outside of a clause"},
		"a word in a heading":              {"# Title", "# What SHOULD be", "SHOULD outside of a clause"},
		"a word in a review":               {"the rest is obvious", "the rest MAY be", "MAY in a review"},
		"a clause that obliges nobody":     {"It MUST be so", "It is so", "R-1 obliges nobody"},
		"small letters":                    {"It MUST be so", "It MUST be so and must stay so", `R-1 says "must"`},
		"another word":                     {"It MUST be so", "It MUST be so, and SHALL", `R-1 says "SHALL"`},
		"a list that is no clause":         {"- **R-2** It", "- It", "neither prose nor a clause"},
		"text behind the tests":            {"  review: a definition.", "  review: a definition.\n  And more.", "T-1 goes on behind its tests"},
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
			problems := problemsOf(strings.Replace(small, c.old, c.replacement, 1))
			if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, c.want) }) {
				t.Errorf("problems %q, want %q", problems, c.want)
			}
		})
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	s, problems := Parse(small)
	if len(problems) > 0 || len(s.Clauses) != 4 {
		t.Fatalf("%d clauses, problems %q", len(s.Clauses), problems)
	}
	c := s.Clauses[1]
	if c.ID != "R-1" || c.Section != "R" || c.Line != 12 || len(c.Text) != 2 || len(c.Reviews) != 1 {
		t.Errorf("clause %+v", c)
	}
	if len(c.Tests) != 2 || c.Tests[1] != (Ref{Package: "a/b", Function: "TestTwo", Case: "a case, with a comma", Line: 14}) {
		t.Errorf("tests %+v", c.Tests)
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
