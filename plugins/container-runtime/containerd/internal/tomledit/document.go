// Package tomledit changes single keys of a TOML document and keeps every other byte: keys, comments, order, indentation,
// line ends and spellings.
//
// What is added carries a comment at the end of its line, so that a later run recognizes it:
//
//	key = "v" # machineadm                                         a line that Set added
//	[a.table] # machineadm                                         a header that Set added; it goes with the last key of its section
//	theirs = "v" # their comment # machineadm: changed             a foreign key with a value that Set changed
//	theirs = {x = 1, y = 2} # machineadm: added y, changed x       the same in an inline table
//
// A document is TOML 1.0. The additions of TOML 1.1 (line breaks and trailing commas in inline tables, \e, \xHH, times
// without seconds) are kept, never written.
package tomledit

import "bytes"

const (
	// MaxSize is how many bytes a document may have.
	MaxSize = 4 << 20
	// MaxDepth is how many keys a path may have.
	MaxDepth = 64
)

// Document is a TOML document and its values. It is not safe for concurrent use.
type Document struct {
	data       []byte
	root       *node
	statements []statement
	// keyQuote and textQuote are the quotes that the document itself uses first.
	keyQuote, textQuote byte
}

// noStatement is the section of what stands above the first header.
const noStatement = -1

// statement is a header or a key/value with the rest of its line. No two of them share a line.
type statement struct {
	// node is what it defines: a table, one of an array of tables, or a value.
	node *node
	// section is the header that it stands under, or noStatement; its own number for a header.
	section int
	header  bool
	// body is from the key or the first bracket to the end of the value or the last bracket.
	body span
	// comment is at the end of the line; empty when there is none.
	comment span
}

// edit puts text in the place of data[from:to].
type edit struct {
	span
	text string
}

// Bytes returns the text of the document.
func (d *Document) Bytes() []byte { return bytes.Clone(d.data) }

// Get returns what is at a path: a string, bool, int64, float64, time.Time or a local date or time of go-toml, a []any,
// or a map[string]any. Tables of an array of tables ([[a]]) are reached by their number, from "0". An empty path is the
// whole document. The value is a copy.
func (d *Document) Get(path ...string) (value any, ok bool) {
	n := d.lookup(path)
	if n == nil {
		return nil, false
	}
	return n.decoded(), true
}

// Has reports whether a path exists.
func (d *Document) Has(path ...string) bool { return d.lookup(path) != nil }

// Keys returns the keys of a table in the order of their first appearance, however they are written; the numbers of the
// tables of an array of tables; nil where the path is no table.
func (d *Document) Keys(path ...string) []string {
	n := d.lookup(path)
	if n == nil {
		return nil
	}
	var keys []string
	for _, child := range n.children {
		keys = append(keys, child.name)
	}
	return keys
}

func (d *Document) lookup(path []string) *node {
	n := d.root
	for _, name := range path {
		if n = n.find(name); n == nil {
			return nil
		}
	}
	return n
}

// reach goes down a path as far as the document does, but not into an array of tables. It returns the last node and the
// keys that are left.
func (d *Document) reach(path []string) (*node, []string) {
	n := d.root
	for i, name := range path {
		if n.form == series {
			return n, path[i:]
		}
		child := n.find(name)
		if child == nil {
			return n, path[i:]
		}
		n = child
	}
	return n, nil
}
