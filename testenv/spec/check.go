package spec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The beginnings of the text of a clause that is not in force: about what is not built, and about what was withdrawn.
const (
	Reserved  = "Reserved: "
	Withdrawn = "Withdrawn: "
)

// InForce is false for reserved and withdrawn clauses.
func (c Clause) InForce() bool {
	return !strings.HasPrefix(c.Text[0].Text, Reserved) && !strings.HasPrefix(c.Text[0].Text, Withdrawn)
}

// definitions is the section whose clauses have no duties.
const definitions = "T"

// Numbers finds clauses that are in the wrong section, exist twice, or leave a gap.
func Numbers(s Spec) []string {
	var problems []string
	next := map[string]int{}
	var order []string
	for _, c := range s.Clauses {
		if c.Prefix != c.Section {
			problems = append(problems, fmt.Sprintf("line %d: %s stands in section %q", c.Line, c.ID, c.Section))
		}
		if want := next[c.Prefix] + 1; c.Number != want {
			problems = append(problems, fmt.Sprintf("line %d: %s, want %s-%d", c.Line, c.ID, c.Prefix, want))
		}
		next[c.Prefix] = c.Number
		if len(order) > 0 && order[len(order)-1] != c.Prefix && slices.Contains(order, c.Prefix) {
			problems = append(problems, fmt.Sprintf("line %d: %s comes after its section", c.Line, c.ID))
		}
		order = append(order, c.Prefix)
	}
	return problems
}

// Sentences finds lines of prose, of clauses and of reviews that are not one sentence.
func Sentences(s Spec, evidence map[string]Evidence) []string {
	code := regexp.MustCompile("`[^`]*`")
	inner := regexp.MustCompile(`[.!?]["')*]*\s+\S`)
	var problems []string
	check := func(where, text, end string) {
		text = code.ReplaceAllString(text, "x")
		switch {
		case inner.MatchString(text):
			problems = append(problems, fmt.Sprintf("%s: two sentences: %s", where, text))
		case !strings.ContainsAny(text[len(text)-1:], end):
			problems = append(problems, fmt.Sprintf("%s: a sentence that does not end: %s", where, text))
		}
	}
	for _, l := range s.Outside {
		if l.Kind == Prose {
			check(line(l.Number), l.Text, ".:?")
		}
	}
	for _, c := range s.Clauses {
		for _, l := range c.Text {
			check(line(l.Number), l.Text, ".")
		}
		if review := evidence[c.ID].Review; review != "" {
			check("the review of "+c.ID, review, ".")
		}
	}
	return problems
}

func line(number int) string { return fmt.Sprintf("line %d", number) }

// Words finds the words of RFC 2119 outside of clauses, clauses without a duty, and small letters where capitals
// are meant.
func Words(s Spec, evidence map[string]Evidence) []string {
	capitals := regexp.MustCompile(`\b(MUST|SHALL|SHOULD|MAY|REQUIRED|RECOMMENDED|OPTIONAL)\b`)
	known := regexp.MustCompile(`\b(MUST|SHOULD|MAY)\b`)
	others := regexp.MustCompile(`\b(SHALL|REQUIRED|RECOMMENDED|OPTIONAL|must|shall|should|may)\b`)
	code := regexp.MustCompile("`[^`]*`")
	var problems []string
	for _, l := range s.Outside {
		if word := capitals.FindString(l.Text); word != "" {
			problems = append(problems, fmt.Sprintf("line %d: %s outside of a clause", l.Number, word))
		}
	}
	for _, c := range s.Clauses {
		var text strings.Builder
		for _, l := range c.Text {
			text.WriteString(code.ReplaceAllString(l.Text, "x") + "\n")
		}
		obliges := known.MatchString(text.String())
		if word := others.FindString(text.String()); word != "" {
			problems = append(problems, fmt.Sprintf("line %d: %s says %q", c.Line, c.ID, word))
		}
		switch {
		case !c.InForce() && obliges:
			problems = append(problems, fmt.Sprintf("line %d: %s is not in force and obliges all the same", c.Line, c.ID))
		case !obliges && c.InForce() && c.Prefix != definitions:
			problems = append(problems, fmt.Sprintf("line %d: %s obliges nobody", c.Line, c.ID))
		}
		if word := capitals.FindString(evidence[c.ID].Review); word != "" {
			problems = append(problems, fmt.Sprintf("the review of %s: %s in a review", c.ID, word))
		}
	}
	return problems
}

// Same finds rows that a table has and should not have, lacks, or has otherwise. Rows are known by their first cell.
func Same(what string, got, want [][]string) []string {
	var problems []string
	find := func(rows [][]string, name string) []string {
		for _, r := range rows {
			if r[0] == name {
				return r
			}
		}
		return nil
	}
	for i, w := range want {
		switch g := find(got, w[0]); {
		case g == nil:
			problems = append(problems, fmt.Sprintf("%s: %q is missing", what, w[0]))
		case len(g) < len(w) || !slices.Equal(g[:len(w)], w):
			problems = append(problems, fmt.Sprintf("%s: got %q, want %q", what, g, w))
		case i < len(got) && got[i][0] != w[0]:
			problems = append(problems, fmt.Sprintf("%s: %q is not where it belongs", what, w[0]))
		}
	}
	for i, g := range got {
		if find(want, g[0]) == nil {
			problems = append(problems, fmt.Sprintf("%s: %q is not in the code", what, g[0]))
		}
		if len(find(got[:i], g[0])) > 0 {
			problems = append(problems, fmt.Sprintf("%s: %q is there twice", what, g[0]))
		}
	}
	return problems
}

// Used finds values that the clauses of their row do not contain. A row is a value's name, the value, clauses.
func Used(s Spec, rows [][]string) []string {
	var problems []string
	for _, row := range rows {
		if len(row) < 3 {
			problems = append(problems, fmt.Sprintf("values: %q has no clauses", row))
			continue
		}
		// Not a part of another number or word.
		value := regexp.MustCompile(`(^|[^0-9A-Za-z.,_-])` + regexp.QuoteMeta(row[1]) + `($|[^0-9A-Za-z_-])`)
		for id := range strings.SplitSeq(row[2], ", ") {
			at := slices.IndexFunc(s.Clauses, func(c Clause) bool { return c.ID == id })
			switch {
			case at < 0:
				problems = append(problems, fmt.Sprintf("values: %s names %s, which is not there", row[0], id))
			case !slices.ContainsFunc(s.Clauses[at].Text, func(l Line) bool { return value.MatchString(l.Text) }):
				problems = append(problems, fmt.Sprintf("values: %s does not say %s", id, row[1]))
			}
		}
	}
	return problems
}
