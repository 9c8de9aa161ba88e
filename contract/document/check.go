package document

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// checker refuses everything outside the strict subset of YAML, and writes the JSON, in one pass.
type checker struct {
	chunk  chunk
	out    []byte
	steps  []step // the path of the current value, rendered only for a fault
	faults []fault
	more   bool // faults were omitted
}

func (c *checker) fault(n *yaml.Node, message, hint string) {
	if len(c.faults) == MaxErrors {
		c.more = true
		return
	}
	var p Path
	for _, s := range c.steps {
		p = s.in(p)
	}
	c.faults = append(c.faults, fault{field: p, at: c.chunk.at(n), message: message, hint: hint})
}

// value checks n, at this depth of mappings and lists.
func (c *checker) value(n *yaml.Node, depth int) {
	if n.Anchor != "" {
		c.fault(n, "anchors are refused", "remove the & and its name, and repeat the value where it is needed")
	}
	c.tag(n)
	switch n.Kind {
	case yaml.MappingNode, yaml.SequenceNode:
		if depth == MaxDepth {
			c.fault(n, depthMessage, depthHint)
			c.out = append(c.out, "null"...)
			return
		}
		if n.Kind == yaml.MappingNode {
			c.mapping(n, depth+1)
		} else {
			c.sequence(n, depth+1)
		}
	case yaml.ScalarNode:
		c.scalar(n)
	case yaml.AliasNode:
		c.fault(n, "aliases are refused", "write the value itself; text that starts with * needs quotes")
		c.out = append(c.out, "null"...)
	default:
		c.fault(n, "is not a value", "")
		c.out = append(c.out, "null"...)
	}
}

// tag refuses every explicit tag except those that repeat the type of the value.
func (c *checker) tag(n *yaml.Node) {
	if n.Style&yaml.TaggedStyle == 0 && n.Tag != "!" {
		return
	}
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!str",
		n.Kind == yaml.MappingNode && n.Tag == "!!map",
		n.Kind == yaml.SequenceNode && n.Tag == "!!seq":
	case n.Tag == "!!binary":
		c.fault(n, "binary values are refused", "remove the tag; where a field accepts base64, write it as a string")
	default:
		c.fault(n, "tags are refused", "remove the ! and its name; text that starts with ! needs quotes")
	}
}

func (c *checker) sequence(n *yaml.Node, depth int) {
	c.out = append(c.out, '[')
	c.steps = append(c.steps, step{})
	for i, item := range n.Content {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.steps[len(c.steps)-1].index = i
		c.value(item, depth)
	}
	c.steps = c.steps[:len(c.steps)-1]
	c.out = append(c.out, ']')
}

func (c *checker) mapping(n *yaml.Node, depth int) {
	c.out = append(c.out, '{')
	first := len(c.out)
	seen := make(map[string]int, len(n.Content)/2) // key -> line
	pasted := c.pasted(n)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		path, mark := len(c.steps), len(c.out)
		if slices.Contains(pasted, i) {
			c.fault(key, "begins another document", "put --- on a line before it")
			clear(seen)
		}
		named, again := c.key(key), false
		if named {
			c.steps = append(c.steps, step{name: key.Value, named: true})
			var line int
			if line, again = seen[key.Value]; again {
				c.fault(key, fmt.Sprintf("duplicate key, first on line %d", line), "remove one of the two")
			} else {
				seen[key.Value] = c.chunk.at(key).Line
			}
		}
		if len(c.out) > first {
			c.out = append(c.out, ',')
		}
		c.out = appendString(c.out, key.Value)
		c.out = append(c.out, ':')
		c.value(value, depth)
		c.steps = c.steps[:path]
		if !named || again || len(pasted) > 0 && i >= pasted[0] { // the value is checked and omitted
			c.out = c.out[:mark]
		}
	}
	c.out = append(c.out, '}')
}

// pasted returns the indexes of the keys at which another document begins, because --- is missing: in block style, every key of the
// document that occurs again after an apiVersion and a kind, if both follow again.
func (c *checker) pasted(n *yaml.Node) []int {
	if len(c.steps) > 0 || n.Style&yaml.FlowStyle != 0 {
		return nil
	}
	whole := func(seen map[string]bool) bool { return seen["apiVersion"] && seen["kind"] }
	var begins []int
	seen, last := map[string]bool{}, 0
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		if seen[key] && whole(seen) {
			begins, last = append(begins, i), i
			clear(seen)
		}
		seen[key] = true
	}
	if last > 0 && !whole(seen) { // a field that is written twice
		begins = begins[:len(begins)-1]
	}
	return begins
}

// key checks the key of a mapping and reports whether it is a string.
func (c *checker) key(n *yaml.Node) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		c.fault(n, "aliases are refused", "write the key itself; text that starts with * needs quotes")
		return false
	case n.Kind == yaml.ScalarNode && n.Tag == "!!merge":
		c.fault(n, "merge keys are refused", "write the fields out; the text << needs quotes")
		return false
	case n.Kind != yaml.ScalarNode:
		c.fault(n, "a key that is not a string", "write a plain name before the colon; text that starts with [ or { needs quotes")
		return false
	case len(n.Value) > MaxKeyBytes:
		c.fault(n, fmt.Sprintf("a key longer than %d bytes", MaxKeyBytes), "check the position of the colon")
		return false
	}
	if n.Anchor != "" {
		c.fault(n, "anchors are refused", "remove the & and its name")
	}
	c.tag(n)
	if n.Style&yaml.TaggedStyle == 0 && n.Tag != "!!str" && n.Tag != "!!timestamp" && n.Tag != "!" || beyondFloat(n) {
		c.fault(n, "a key that is not a string", "put the key in quotes")
		return false
	}
	return true
}

func (c *checker) scalar(n *yaml.Node) {
	if n.Style&yaml.TaggedStyle != 0 && n.Tag != "!!str" { // refused by its tag
		c.out = append(c.out, "null"...)
		return
	}
	switch n.Tag {
	case "!!null":
		c.out = append(c.out, "null"...)
	case "!!bool":
		c.out = strconv.AppendBool(c.out, n.Value[0] == 't' || n.Value[0] == 'T')
	case "!!int", "!!float":
		number, message, hint := number(n.Value)
		if message != "" {
			c.fault(n, message, hint)
			number = "null"
		}
		c.out = append(c.out, number...)
	default: // timestamps, and << as a value, are strings
		if beyondFloat(n) {
			c.fault(n, "a number beyond 64 bits", "put it in quotes if it is text")
		}
		c.out = appendString(c.out, n.Value)
	}
}

// beyondFloat reports whether n is a float in YAML that exceeds 64 bits, which the parser reads as a string.
func beyondFloat(n *yaml.Node) bool {
	if n.Style != 0 || strings.Trim(n.Value, "0123456789+-.eE") != "" {
		return false
	}
	_, err := strconv.ParseFloat(n.Value, 64)
	return errors.Is(err, strconv.ErrRange)
}
