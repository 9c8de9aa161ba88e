package conformance

import (
	"os"
	"strings"
	"testing"
)

// TestChecksNameClauses that SPEC.md has.
func TestChecksNameClauses(t *testing.T) {
	t.Parallel()
	spec, err := os.ReadFile("../SPEC.md")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, check := range Checks() {
		if names[check.Name] || check.Says == "" || check.Clause == "" || check.run == nil {
			t.Errorf("%s: says %q, clause %q", check.Name, check.Says, check.Clause)
		}
		names[check.Name] = true
		for clause := range strings.SplitSeq(check.Clause, ", ") {
			if !strings.Contains(string(spec), "**"+clause+"**") {
				t.Errorf("%s names clause %s, which SPEC.md does not have", check.Name, clause)
			}
		}
	}
}

// TestDocumentationListsTheChecks compares doc.go with the list of checks.
func TestDocumentationListsTheChecks(t *testing.T) {
	t.Parallel()
	var want strings.Builder
	want.WriteString("// The checks, in their order, with the clauses of SPEC.md that they hold a plugin to:\n//\n")
	for _, check := range Checks() {
		line := "//   - " + check.Name + ":"
		for _, word := range strings.Fields(check.Says + " [" + check.Clause + "]") {
			if len(line)+1+len(word) > 120 {
				want.WriteString(line + "\n")
				line = "//    "
			}
			line += " " + word
		}
		want.WriteString(line + "\n")
	}
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), want.String()) {
		t.Errorf("doc.go must have exactly this:\n%s", want.String())
	}
}
