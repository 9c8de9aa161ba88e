// Package spec checks the form of contract/SPEC.md, compares it with the code, and checks that contract/clauses.json
// names tests that exist for every clause, or the reason why there are none.
package spec

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Spec is a parsed SPEC.md.
type Spec struct {
	Clauses []Clause
	// Outside is every line that belongs to no clause.
	Outside []Line
}

// Clause is one numbered rule.
type Clause struct {
	ID      string // H-1
	Prefix  string // H
	Number  int
	Section string // the prefix that its section announces
	Line    int    // where it begins
	Text    []Line
}

// Line is one line of the file. Heading is the nearest heading above it.
type Line struct {
	Number  int
	Kind    LineKind
	Text    string
	Heading string
}

// LineKind is the kind of a line.
type LineKind int

// The kinds of lines. A clause's own lines are prose.
const (
	Prose LineKind = iota
	Heading
	Table
	Code
)

// Parse reads SPEC.md. Its problems are lines outside of the format.
func Parse(text string) (Spec, []string) {
	p := parser{section: regexp.MustCompile(`^## .*\(([A-Z])\)$`), clause: regexp.MustCompile(`^- \*\*(([A-Z])-(\d+))\*\* (.*)$`)}
	for line := range strings.SplitSeq(text, "\n") {
		p.number++
		p.line(line)
	}
	p.end()
	return p.spec, p.problems
}

type parser struct {
	section, clause *regexp.Regexp

	spec     Spec
	problems []string
	number   int
	prefix   string
	heading  string
	code     bool
	open     *Clause
}

func (p *parser) problem(format string, args ...any) {
	p.problems = append(p.problems, fmt.Sprintf("line %d: ", p.number)+fmt.Sprintf(format, args...))
}

func (p *parser) end() {
	if p.open != nil {
		p.spec.Clauses = append(p.spec.Clauses, *p.open)
	}
	p.open = nil
}

func (p *parser) outside(kind LineKind, text string) {
	p.end()
	p.spec.Outside = append(p.spec.Outside, Line{Number: p.number, Kind: kind, Text: text, Heading: p.heading})
}

func (p *parser) line(text string) {
	switch begin := p.clause.FindStringSubmatch(text); {
	case strings.HasPrefix(text, "```"):
		p.code = !p.code
		p.end()
	case p.code:
		p.outside(Code, text)
	case strings.TrimSpace(text) == "":
		p.end()
	case strings.HasPrefix(text, "#"):
		p.heading = strings.TrimLeft(text, "# ")
		p.outside(Heading, text)
		if strings.HasPrefix(text, "## ") {
			p.prefix = ""
		}
		if section := p.section.FindStringSubmatch(text); section != nil {
			p.prefix = section[1]
		}
	case begin != nil:
		p.end()
		number, err := strconv.Atoi(begin[3])
		if err != nil {
			p.problem("the number of %s is none", begin[1])
		}
		p.open = &Clause{ID: begin[1], Prefix: begin[2], Number: number, Section: p.prefix, Line: p.number}
		p.open.Text = []Line{{Number: p.number, Text: begin[4], Heading: p.heading}}
	case strings.HasPrefix(text, "|"):
		p.outside(Table, text)
	case strings.HasPrefix(text, "  ") && p.open != nil:
		p.open.Text = append(p.open.Text, Line{Number: p.number, Text: strings.TrimSpace(text), Heading: p.heading})
	case strings.HasPrefix(text, "-"), strings.HasPrefix(text, "*"), strings.HasPrefix(text, " "):
		p.problem("neither prose nor a clause: %s", text)
	default:
		p.outside(Prose, text)
	}
}

// TableRows are the rows of the table below the heading that has this head: the cells, without grave accents. The cells
// of head are joined by |.
func (s Spec) TableRows(heading, head string) [][]string {
	var rows [][]string
	inside, last := false, 0
	for _, line := range s.Outside {
		if line.Kind != Table || line.Heading != heading {
			continue
		}
		cells := strings.Split(strings.Trim(line.Text, "|"), "|")
		for i, c := range cells {
			cells[i] = strings.ReplaceAll(strings.TrimSpace(c), "`", "")
		}
		switch {
		case line.Number != last+1: // a table begins
			inside = strings.Join(cells, "|") == head
		case inside && !strings.HasPrefix(cells[0], "--"):
			rows = append(rows, cells)
		}
		last = line.Number
	}
	return rows
}
