package cli

import (
	"io"
	"regexp"
	"strings"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/contract/v1alpha1/examples"
	"github.com/machineadm/machineadm/contract/v1alpha1/schema"
)

// The values of explain --example.
const (
	minimalExample = "minimal"
	fullExample    = "full"
)

// writeExample writes an example of a kind. The minimal one is as it is written; the one with every field gets a comment for each.
func writeExample(s streams, kind string, what explained) error {
	full := what.example == fullExample
	switch {
	case !full && what.example != minimalExample:
		return usage("--example is " + minimalExample + " or " + fullExample)
	case what.path != "" || what.recursive:
		return usage("--example prints a whole document: run machineadm explain " + kind + " --example=" + what.example)
	}
	text := examples.For(v1alpha1.APIVersion, kind, full)
	if text == nil {
		return &exitError{
			code: report.ExitUsage, message: "there is no example of the kind " + kind,
			hint: "machineadm explain " + kind + " shows its fields; its plugin comes with its own examples",
		}
	}
	var root *jsonSchema
	if full {
		var err error
		if root, err = readSchema(schema.For(v1alpha1.APIVersion, kind)); err != nil {
			return &exitError{code: report.ExitFailed, message: "the JSON schema of " + kind + " cannot be read: " + err.Error()}
		}
	}
	_, err := io.WriteString(s.out, annotated(string(text), root))
	return err
}

// exampleLine is a line with a field, of a document or commented out: indentation, dashes and name.
var exampleLine = regexp.MustCompile(`^( *)#?((?:- )*)("[^"]*"|[\w./:-]*\w):(?: (\|)?|\n$)`)

// annotated returns an example of this release with the first sentence about each field above it, from the schema, and without the line for
// editors, whose path is valid in the checkout. Without a schema it adds nothing.
func annotated(text string, root *jsonSchema) string {
	type level struct {
		column int
		path   string
		schema *jsonSchema // nil for free values
	}
	var out strings.Builder
	around := []level{{column: -1, schema: root}}
	seen, block := map[string]bool{}, -1 // block is the column of the field whose lines of text follow
	for line := range strings.Lines(text) {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		match := exampleLine.FindStringSubmatch(line)
		inBlock := block >= 0 && indent > block
		if strings.HasPrefix(line, "# yaml-language-server:") {
			continue
		}
		if root != nil && match != nil && !inBlock {
			column := indent + len(match[2])
			for around[len(around)-1].column >= column {
				around = around[:len(around)-1]
			}
			outer := around[len(around)-1]
			here := level{column: column, path: outer.path + "." + match[3], schema: outer.schema.below(match[3])}
			if here.schema != nil && here.schema.Description != "" && !seen[here.path] {
				seen[here.path] = true
				for comment := range strings.Lines(wrapped(firstSentence(here.schema.Description), match[1]+"  ")) {
					out.WriteString(match[1] + "# " + comment[len(match[1])+2:])
				}
			}
			around = append(around, here)
			if block = -1; match[4] != "" {
				block = column
			}
		}
		out.WriteString(line)
	}
	return out.String()
}

// below is the schema of a field of a mapping or of the items of a list; nil if there is none.
func (s *jsonSchema) below(name string) *jsonSchema {
	for s != nil {
		if field := s.Properties.fields[name]; field != nil || len(s.Properties.names) > 0 {
			return field
		}
		list := s.Items != nil
		if s = s.element(); !list {
			return s // the value of any key
		}
	}
	return nil
}

// firstSentence returns what a description begins with, and its default.
func firstSentence(description string) string {
	about, fallback := divide(description)
	first, _, _ := strings.Cut(about, ". ")
	return strings.Join(append([]string{strings.TrimSuffix(first, ".") + "."}, fallback...), " ")
}
