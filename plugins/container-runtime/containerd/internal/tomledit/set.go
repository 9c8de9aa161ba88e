package tomledit

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

// Set sets the value at a path: a string, bool, int64, float64, []string, or a []any of these and of map[string]any.
//
// A key that exists keeps everything but the bytes of its value, and these, too, when they mean the same already. In an
// array over several lines the comments stay, and the values before the first and behind the last difference. A new key
// is added where its table is written, in the form of the table. A value does not replace a table, and nothing in an
// array of tables ([[a]]) is edited. The error is of type *Error, and the document is then unchanged.
func (d *Document) Set(path []string, value any) error {
	want, err := normal(value, len(path))
	_, isTable := want.(map[string]any)
	switch {
	case err != nil:
		return &Error{Path: path, Message: err.Error()}
	case isTable:
		return &Error{Path: path, Message: "a table cannot be set: set its values"}
	case len(path) == 0:
		return &Error{Message: "the document itself cannot be set"}
	case slices.ContainsFunc(path, func(key string) bool { return !utf8.ValidString(key) }):
		return &Error{Message: "a key that is not UTF-8"}
	}
	next, err := d.set(path, want)
	if err != nil {
		return about(path, err)
	}
	*d = *next
	return nil
}

// about sets the path of an error that has none.
func about(path []string, err error) error {
	var fault *Error
	if errors.As(err, &fault) && fault.Path == nil {
		fault.Path = path
	}
	return err
}

func (d *Document) set(path []string, want any) (*Document, error) {
	at, rest := d.reach(path)
	switch {
	case at.form == series || at.form == leaf && len(rest) > 0:
		return nil, d.obstacle(at, rest)
	case at.form == leaf:
		return d.replace(at, want)
	case len(rest) == 0:
		return nil, d.fault(d.place(at), "%s is a table, which a value does not replace", dottedKey(path))
	case at.container() != nil:
		return d.addInline(at, rest, want)
	case at.form == dotted:
		return d.addDotted(at, rest, want)
	case at.form == headed && len(rest) == 1:
		return d.addKey(at, rest[0], want)
	default:
		last := len(path) - 1
		return d.addTable(path[:last], d.assignment(nil, path[last:], want))
	}
}

func (d *Document) obstacle(at *node, rest []string) error {
	if at.form == series {
		return d.fault(d.place(at), "%s is an array of tables, which is not edited", dottedKey(at.path(nil)))
	}
	return d.fault(d.place(at), "%s is a value, so that %s cannot be in it", dottedKey(at.path(nil)), dottedKey(rest))
}

func (d *Document) replace(at *node, want any) (*Document, error) {
	if equal(at.content, want) {
		return d, nil
	}
	s := &d.statements[at.home]
	var edits []edit
	have, wasArray := at.content.([]any)
	list, isArray := want.([]any)
	if wasArray && isArray && d.lineEnd(at.value.from) < at.value.to {
		edits = d.editArray(at, have, list)
	} else {
		edits = []edit{{at.value, render(want, d.quoteOf(at.value))}}
	}
	return d.apply(append(edits, d.with(s, item{at.path(s.node), true})...)...)
}

// addInline adds a key to an inline table, behind its relatives.
func (d *Document) addInline(at *node, rest []string, want any) (*Document, error) {
	table := at.container()
	s := &d.statements[at.home]
	text := d.assignment(at.spelled(table), rest, want)
	mark := d.with(s, item{path: append(at.path(s.node), rest...)})
	if relatives := at.pairs(); len(relatives) > 0 {
		end := relatives[len(relatives)-1].pair.to
		return d.apply(append([]edit{{span{end, end}, ", " + text}}, mark...)...)
	}
	begin := table.value.from + 1
	if d.data[begin] != '}' {
		text = " " + text
	}
	return d.apply(append([]edit{{span{begin, begin}, text}}, mark...)...)
}

// assignment is KEY = VALUE.
func (d *Document) assignment(spelled, keys []string, want any) string {
	key := strings.Join(slices.Concat(spelled, renderKeys(keys, d.keyQuote)), ".")
	return key + " = " + render(want, d.textQuote)
}

// addDotted adds a key to a table that is written with dotted keys, behind the last of these.
func (d *Document) addDotted(at *node, rest []string, want any) (*Document, error) {
	section := d.statements[at.home].section
	table := d.root
	if section != noStatement {
		table = d.statements[section].node
	}
	last := at.home
	for i := at.home; i < len(d.statements) && d.statements[i].section == section; i++ {
		if d.statements[i].node.within(at) {
			last = i
		}
	}
	s := &d.statements[last]
	line := d.indent(s.body.from) + d.assignment(at.spelled(table), rest, want) + " " + signature
	return d.insert(d.lines(s).to, []string{line})
}

// addKey adds a key to the section of a table that has one.
func (d *Document) addKey(at *node, key string, want any) (*Document, error) {
	line := d.assignment(nil, []string{key}, want) + " " + signature
	last := at.home
	for last+1 < len(d.statements) && !d.statements[last+1].header {
		last++
	}
	if last == noStatement {
		place := d.rootPlace()
		lines := []string{line}
		if place == 0 && !d.isBlank(span{0, len(d.data)}) {
			lines = append(lines, "")
		}
		return d.insert(place, lines)
	}
	s := &d.statements[last]
	indent := d.indent(s.body.from)
	if s.header {
		indent += d.keyIndent()
	}
	return d.insert(d.lines(s).to, []string{indent + line})
}
