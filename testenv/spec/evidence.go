package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Evidence is what verifies a clause: tests, or the reason why a review has to.
type Evidence struct {
	// Runtime marks a clause about the runtime alone, in a section whose other clauses are about plugins.
	Runtime bool `json:"runtime,omitempty"`
	// Tests are "PACKAGE TestName" or "PACKAGE TestName/case", with the package below the root of the repository.
	Tests  []string `json:"tests,omitempty"`
	Review string   `json:"review,omitempty"`
}

// ParseEvidence reads clauses.json: the evidence by the ID of the clause.
func ParseEvidence(data []byte) (map[string]Evidence, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var out map[string]Evidence
	if err := d.Decode(&out); err != nil {
		return nil, fmt.Errorf("read the evidence: %w", err)
	}
	return out, nil
}

// FormatEvidence is clauses.json in its only form: the clauses in the order of the text, none of them twice.
func FormatEvidence(s Spec, evidence map[string]Evidence) (string, error) {
	var out strings.Builder
	out.WriteString("{")
	for i, c := range s.Clauses {
		var one bytes.Buffer
		e := json.NewEncoder(&one)
		e.SetEscapeHTML(false)
		e.SetIndent("  ", "  ")
		if err := e.Encode(evidence[c.ID]); err != nil {
			return "", fmt.Errorf("write the evidence of %s: %w", c.ID, err)
		}
		if i > 0 {
			out.WriteString(",")
		}
		fmt.Fprintf(&out, "\n  %q: %s", c.ID, strings.TrimSpace(one.String()))
	}
	out.WriteString("\n}\n")
	return out.String(), nil
}

// Held finds clauses without evidence, evidence of no clause, and tests of clauses that are not in force.
func Held(s Spec, evidence map[string]Evidence) []string {
	var problems []string
	known := map[string]bool{}
	for _, c := range s.Clauses {
		known[c.ID] = true
		e, found := evidence[c.ID]
		switch {
		case !found, len(e.Tests) == 0 && e.Review == "":
			problems = append(problems, c.ID+" names neither a test nor a review")
		case !c.InForce() && (len(e.Tests) > 0 || e.Review == ""):
			problems = append(problems, c.ID+" is not in force: a review gives the reason, and no test verifies it")
		}
	}
	for id := range evidence {
		if !known[id] {
			problems = append(problems, id+" is no clause")
		}
	}
	return problems
}

// TestFile is what a test file has: its functions, and every text that it spells out.
type TestFile struct {
	Functions, Texts map[string]bool
}

// Tests finds references to tests that do not exist. files returns the test files of a package.
func Tests(evidence map[string]Evidence, files func(pkg string) ([]TestFile, error)) []string {
	var problems []string
	for id, e := range evidence {
		for i, ref := range e.Tests {
			if slices.Contains(e.Tests[:i], ref) {
				problems = append(problems, fmt.Sprintf("%s names %s twice", id, ref))
			}
			pkg, name, two := strings.Cut(ref, " ")
			function, sub, _ := strings.Cut(name, "/")
			if !two || pkg == "" || function == "" {
				problems = append(problems, fmt.Sprintf("%s: not a package and a test: %q", id, ref))
				continue
			}
			all, err := files(pkg)
			if err != nil {
				problems = append(problems, fmt.Sprintf("%s: %v", id, err))
				continue
			}
			at := slices.IndexFunc(all, func(f TestFile) bool { return f.Functions[function] })
			switch {
			case at < 0:
				problems = append(problems, fmt.Sprintf("%s: there is no test %s", id, ref))
			case sub != "" && !all[at].Texts[sub]:
				problems = append(problems, fmt.Sprintf("%s: %s has no case of that name", id, ref))
			}
		}
	}
	return problems
}
