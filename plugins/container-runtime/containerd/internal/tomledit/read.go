package tomledit

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// name is a key as the document writes it.
type name struct {
	text, spelling string
	span
}

// reader builds a Document's tree, and refuses a key that is defined twice.
type reader struct {
	parser unstable.Parser
	doc    *Document
	// table is where key/values go, section its header.
	table   *node
	section int
}

func (r *reader) expression(e *unstable.Node) error {
	var err error
	switch e.Kind {
	case unstable.Comment:
		return nil
	case unstable.KeyValue:
		r.doc.statements = append(r.doc.statements, statement{section: r.section})
		err = r.topLevel(e)
	default:
		r.section = len(r.doc.statements)
		r.doc.statements = append(r.doc.statements, statement{section: r.section, header: true})
		err = r.header(e)
	}
	if comment := e.Next(); err == nil && comment != nil && comment.Kind == unstable.Comment {
		r.current().comment = spanOf(comment.Raw)
	}
	return err
}

func (r *reader) current() *statement { return &r.doc.statements[len(r.doc.statements)-1] }

func spanOf(raw unstable.Range) span { return span{int(raw.Offset), int(raw.Offset) + int(raw.Length)} }

func (r *reader) names(it unstable.Iterator) []name {
	var all []name
	for it.Next() {
		key := it.Node()
		all = append(all, name{string(key.Data), string(r.parser.Raw(key.Raw)), spanOf(key.Raw)})
	}
	return all
}

func (r *reader) create(parent *node, key name, f form) (*node, error) {
	depth := 1
	for n := parent; n.parent != nil; n = n.parent {
		depth++
	}
	if depth > MaxDepth {
		return nil, r.doc.fault(key.from, "more than %d keys deep", MaxDepth)
	}
	if r.doc.keyQuote == 0 && (key.spelling[0] == '"' || key.spelling[0] == '\'') {
		r.doc.keyQuote = key.spelling[0]
	}
	child := &node{name: key.text, spelling: key.spelling, form: f, home: len(r.doc.statements) - 1}
	return parent.add(child), nil
}

func (r *reader) twice(n *node, key name) error {
	line := r.doc.fault(r.doc.place(n), "").Line
	return r.doc.fault(key.from, "%s is already defined in line %d", dottedKey(n.path(nil)), line)
}

// header reads [a.b] and [[a.b]].
func (r *reader) header(e *unstable.Node) error {
	keys := r.names(e.Key())
	brackets := 1
	if e.Kind == unstable.ArrayTable {
		brackets = 2
	}
	r.current().body = span{
		r.doc.backOverBlanks(keys[0].from) - brackets,
		r.doc.overBlanks(keys[len(keys)-1].to) + brackets,
	}
	at := r.doc.root
	var err error
	for _, key := range keys[:len(keys)-1] {
		child := at.find(key.text)
		switch {
		case child == nil:
			child, err = r.create(at, key, implied)
		case child.form == leaf || child.form == inline:
			err = r.twice(child, key)
		case child.form == series:
			child = child.children[len(child.children)-1]
		}
		if err != nil {
			return err
		}
		at = child
	}
	last := keys[len(keys)-1]
	child := at.find(last.text)
	if e.Kind == unstable.ArrayTable {
		child, err = r.element(at, child, last)
	} else {
		child, err = r.headed(at, child, last)
	}
	r.current().node, r.table = child, child
	return err
}

func (r *reader) headed(at, child *node, key name) (*node, error) {
	switch {
	case child == nil:
		return r.create(at, key, headed)
	case child.form != implied:
		return nil, r.twice(child, key)
	}
	child.form, child.home = headed, len(r.doc.statements)-1
	return child, nil
}

func (r *reader) element(at, child *node, key name) (*node, error) {
	var err error
	switch {
	case child == nil:
		child, err = r.create(at, key, series)
	case child.form != series:
		err = r.twice(child, key)
	}
	if err != nil {
		return nil, err
	}
	number := strconv.Itoa(len(child.children))
	return r.create(child, name{number, number, key.span}, element)
}

func (r *reader) topLevel(e *unstable.Node) error {
	r.current().body = spanOf(e.Raw)
	n, err := r.pair(r.table, e)
	r.current().node = n
	return err
}

// pair reads a.b = value into a table.
func (r *reader) pair(at *node, e *unstable.Node) (*node, error) {
	keys := r.names(e.Key())
	var err error
	for _, key := range keys[:len(keys)-1] {
		child := at.find(key.text)
		switch {
		case child == nil:
			child, err = r.create(at, key, dotted)
		case child.form != dotted:
			err = r.twice(child, key)
		}
		if err != nil {
			return nil, err
		}
		at = child
	}
	last := keys[len(keys)-1]
	if child := at.find(last.text); child != nil {
		return nil, r.twice(child, last)
	}
	n, err := r.create(at, last, leaf)
	if err != nil {
		return nil, err
	}
	n.pair = spanOf(e.Raw)
	n.value = span{r.doc.overBlanks(r.doc.overBlanks(last.to) + 1), n.pair.to}
	return n, r.value(n, e.Value())
}

func (r *reader) value(n *node, v *unstable.Node) error {
	switch v.Kind {
	case unstable.InlineTable:
		n.form = inline
		for it := v.Children(); it.Next(); {
			if it.Node().Kind != unstable.KeyValue {
				continue
			}
			if _, err := r.pair(n, it.Node()); err != nil {
				return err
			}
		}
	case unstable.String:
		n.content = string(v.Data)
		if r.doc.textQuote == 0 {
			r.doc.textQuote = r.doc.data[n.value.from]
		}
	case unstable.Bool:
		n.content = v.Data[0] == 't'
	default:
		var ok bool
		if n.content, ok = decode(r.doc.data[n.value.from:n.value.to]); !ok {
			return r.doc.fault(n.value.from, "not TOML: a number out of range, a date or time that does not exist, or a key that is defined twice")
		}
	}
	return nil
}

// decode decodes a value that the parser has found. The error of go-toml is dropped because it can quote the value.
func decode(value []byte) (content any, ok bool) {
	var holder struct{ V any }
	err := toml.Unmarshal(append([]byte("V = "), value...), &holder)
	return holder.V, err == nil
}

// Parse reads a document. Its errors are of type *Error. An empty document is valid. As TOML 1.0 requires, a byte
// order mark, control characters and bytes that are not UTF-8 are errors.
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
