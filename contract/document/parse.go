package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v4"
)

// parse returns the root of the chunk's document; nil if it is empty.
func (c chunk) parse() (root *yaml.Node, failure *fault) {
	if offset, message, hint := badCharacter(c.text); offset >= 0 {
		return nil, &fault{at: c.position(offset), message: message, hint: hint}
	}
	if c.blank {
		return nil, nil
	}
	if c.directives {
		if c, failure = c.withoutDirectives(); failure != nil {
			return nil, failure
		}
	}
	if structure(c.text) > MaxStructure {
		return nil, &fault{
			at:      Position{Line: c.line, Column: 1},
			message: fmt.Sprintf("has too much structure: over %d commas, colons, brackets, dashes, quotes, comments and the like", MaxStructure),
			hint:    "split it into several documents",
		}
	}
	return c.load()
}

// load runs the parser twice: behind the document there must be nothing.
func (c chunk) load() (root *yaml.Node, failure *fault) {
	rules := &rules{}
	defer func() {
		if recover() != nil { // of the parser alone: nothing of ours runs here
			root, failure = nil, &fault{at: Position{Line: c.line, Column: 1}, message: "cannot be read as YAML"}
		}
	}()
	loader, err := yaml.NewLoader(bytes.NewReader(c.text), yaml.WithPlugin(rules))
	if err != nil {
		return nil, c.syntax(err, rules)
	}
	var document, extra yaml.Node
	if err := loader.Load(&document); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, c.syntax(err, rules)
	}
	if err := loader.Load(&extra); err == nil {
		return nil, &fault{at: c.at(&extra), message: "text after the end of the document", hint: "put --- on a line before it"}
	} else if !errors.Is(err, io.EOF) {
		return nil, c.syntax(err, rules)
	}
	if len(document.Content) != 1 {
		return nil, nil
	}
	root = document.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" && root.Value == "" && root.Style == 0 && root.Anchor == "" {
		return nil, nil
	}
	return root, nil
}

// at returns the position of a node in the stream.
func (c chunk) at(n *yaml.Node) Position {
	return Position{Line: c.line + n.Line - 1, Column: n.Column}
}
