package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"unicode/utf8"
)

// kind is the kind of a JSON value.
type kind byte

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindList
	kindMapping
)

// tree is a JSON value with the order of its keys and with duplicates.
type tree struct {
	kind    kind
	text    string // the string, or the token of a number or boolean
	raw     []byte // the JSON text, if it was read
	items   []tree
	members []member
	again   bool // a key was duplicate, here or below
}

type member struct {
	name  string
	value tree
}

// unique removes all but the first of the members with one name, here and below, and calls report for each removed one.
func (t *tree) unique(p Path, report func(Path)) {
	if !t.again {
		return
	}
	seen := map[string]bool{}
	t.members = slices.DeleteFunc(t.members, func(m member) bool {
		again := seen[m.name]
		seen[m.name] = true
		if again {
			report(p.Field(m.name))
		}
		return again
	})
	for i := range t.members {
		t.members[i].value.unique(p.Field(t.members[i].name), report)
	}
	for i := range t.items {
		t.items[i].unique(p.Index(i), report)
	}
}

// readTree reads one JSON value. Its error does not quote it.
func readTree(data []byte) (tree, error) {
	if !json.Valid(data) {
		return tree{}, errors.New("is not valid JSON")
	}
	r := treeReader{data: data}
	return r.value(), nil
}

// treeReader reads valid JSON.
type treeReader struct {
	data []byte
	at   int
}

// peek returns the next byte that is not blank, or 0.
func (r *treeReader) peek() byte {
	for ; r.at < len(r.data); r.at++ {
		if c := r.data[r.at]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
	}
	return 0
}

func (r *treeReader) value() (t tree) {
	first := r.peek()
	start := r.at
	switch first {
	case '{':
		t.kind = kindMapping
		seen := map[string]bool{}
		for r.more('}') {
			name := r.text()
			r.peek()
			r.at++ // the colon
			value := r.value()
			t.members = append(t.members, member{name, value})
			t.again = t.again || value.again || seen[name]
			seen[name] = true
		}
	case '[':
		t.kind = kindList
		for r.more(']') {
			item := r.value()
			t.items = append(t.items, item)
			t.again = t.again || item.again
		}
	case '"':
		t.kind, t.text = kindString, r.text()
	default:
		end := bytes.IndexAny(r.data[r.at:], ",]} \t\r\n")
		if end < 0 {
			end = len(r.data) - r.at
		}
		t.kind, t.text = kindNumber, string(r.data[r.at:r.at+end])
		r.at += end
		switch first {
		case 'n':
			t.kind = kindNull
		case 't', 'f':
			t.kind = kindBool
		}
	}
	t.raw = r.data[start:r.at]
	return t
}

// more skips an opening bracket, a comma or the closing bracket, and reports whether an element follows.
func (r *treeReader) more(closing byte) bool {
	r.peek()
	if r.data[r.at] != closing {
		r.at++ // [, { or a comma
	}
	if r.peek() == closing {
		r.at++
		return false
	}
	return true
}

// text reads a string.
func (r *treeReader) text() (text string) {
	r.peek()
	start := r.at
	for r.at++; r.data[r.at] != '"'; r.at++ {
		if r.data[r.at] == '\\' {
			r.at++
		}
	}
	r.at++
	raw := r.data[start:r.at]
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw[1 : len(raw)-1])
	}
	_ = json.Unmarshal(raw, &text) // valid
	return text
}
