package explain

import (
	"regexp"
	"strings"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/contract/v1alpha1/examples"
	"github.com/machineadm/machineadm/contract/v1alpha1/schema"
)

// example returns an example of a kind of this release: the minimal one as it is written, the one with every field with a comment for each.
func example(kind string, full bool) (string, error) {
	text := examples.For(v1alpha1.APIVersion, kind, full)
	if text == nil {
		return "", refused("there is no example of the kind "+kind, "machineadm explain "+kind+" shows its fields; its plugin comes with its own examples")
	}
	if !full {
		return annotated(string(text), nil), nil
	}
	root, err := readSchema(kind, schema.For(v1alpha1.APIVersion, kind))
	return annotated(string(text), root), err
}

// exampleLine is a line with a field, of a document or commented out: indentation, dashes and name.
var exampleLine = regexp.MustCompile(`^( *)#?((?:- )*)("[^"]*"|[\w./:-]*\w):(?: (\|)?|\n$)`)

// annotated returns an example of this release with the first sentence about each field above it, from the schema. Without a
// schema it adds nothing.
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

// below returns the schema that has the fields of a value: the schema of a mapping itself, or of the items of a list. It is nil for other values.
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
