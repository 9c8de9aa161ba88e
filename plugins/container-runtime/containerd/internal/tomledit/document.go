// Package tomledit changes single keys of a TOML document that people wrote and leaves every other byte as it is:
// their keys, comments, order, indentation, line ends and spellings.
//
// What is added carries a comment at the end of its line, so that a later run knows it again:
//
//	key = "v" # machineadm                                         the line is ours
//	[a.table] # machineadm                                         so is the header; it goes with its section's last key
//	theirs = "v" # their comment # machineadm: changed             their key, our value
//	theirs = {x = 1, y = 2} # machineadm: added y, changed x       the same inside of an inline table
//
// A document is TOML 1.0. What TOML 1.1 allows besides (line breaks and trailing commas in inline tables, \e, \xHH,
// times without seconds) is kept, never written.
package tomledit

import (
	"bytes"
	"unicode/utf8"
)

const (
	// MaxSize is how many bytes a document may have.
	MaxSize = 4 << 20
	// MaxDepth is how many keys a path may have.
	MaxDepth = 64
)

// Document is a TOML document and what it says. It is not for use by several goroutines at once.
type Document struct {
	data       []byte
	root       *node
	statements []statement
	// keyQuote and textQuote are the quotes that the document itself uses first.
	keyQuote, textQuote byte
}

// Parse reads a document. Its errors are of type *Error. An empty document is a good one. Refused are a byte order
// mark, control characters (NUL among them) and bytes that are not UTF-8, as TOML 1.0 says.
func Parse(data []byte) (*Document, error) {
	return parse(bytes.Clone(data))
}

func parse(data []byte) (*Document, error) {
	d := &Document{data: data, root: &node{form: headed, home: noStatement}}
	if len(data) > MaxSize {
		return nil, &Error{Message: "the document is longer than 4 MiB"}
	}
	if bytes.HasPrefix(data, []byte("\ufeff")) {
		return nil, d.fault(0, "a byte order mark, which TOML does not allow")
	}
	if at := invalidUTF8(data); at >= 0 {
		return nil, d.fault(at, "not UTF-8")
	}
	r := reader{doc: d, table: d.root, section: noStatement}
	r.parser.KeepComments = true
	r.parser.Reset(data)
	for r.parser.NextExpression() {
		if err := r.expression(r.parser.Expression()); err != nil {
			return nil, err
		}
	}
	if err := r.parser.Error(); err != nil {
		return nil, d.syntax(&r.parser, err)
	}
	return d, nil
}

func invalidUTF8(data []byte) int {
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

// Bytes returns the text of the document.
func (d *Document) Bytes() []byte { return bytes.Clone(d.data) }

// Get returns what is at a path: a string, bool, int64, float64, time.Time or a local date or time of go-toml, a []any,
// or a map[string]any. Tables of an array of tables ([[a]]) are reached by their number, from "0". An empty path is the
// whole document. The value is the caller's own.
func (d *Document) Get(path ...string) (value any, ok bool) {
	n := d.lookup(path)
	if n == nil {
		return nil, false
	}
	return n.decoded(), true
}

// Has says whether there is anything at a path.
func (d *Document) Has(path ...string) bool { return d.lookup(path) != nil }

// Keys returns the keys of a table in the order of their first appearance, however they are written; the numbers of the
// tables of an array of tables; nil when there is no table at the path.
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

// reach goes down a path as far as the document does, but not into an array of tables. It returns what it came to and
// the keys that are left.
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

// edit puts text in the place of data[from:to].
type edit struct {
	span
	text string
}

// apply returns the document that the edits make of this one. They do not overlap, and are in order.
func (d *Document) apply(edits ...edit) (*Document, error) {
	var out []byte
	done := 0
	for _, e := range edits {
		out = append(append(out, d.data[done:e.from]...), e.text...)
		done = e.to
	}
	return parse(append(out, d.data[done:]...))
}
