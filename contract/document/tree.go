package document

import (
	"bytes"
	"encoding/json"
	"errors"
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
}

type member struct {
	name  string
	value tree
}

var errNotJSON = errors.New("is not valid JSON")

// readTree reads one JSON value. Its error does not quote it.
func readTree(data []byte) (tree, error) {
	if !json.Valid(data) {
		return tree{}, errNotJSON
	}
	r := treeReader{data: data}
	return r.value()
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

func (r *treeReader) value() (t tree, err error) {
	first := r.peek()
	start := r.at
	switch first {
	case '{':
		t.kind = kindMapping
		err = r.each('}', func() error {
			name, err := r.text()
			if err != nil {
				return err
			}
			r.peek()
			r.at++ // the colon
			value, err := r.value()
			t.members = append(t.members, member{name, value})
			return err
		})
	case '[':
		t.kind = kindList
		err = r.each(']', func() error {
			item, err := r.value()
			t.items = append(t.items, item)
			return err
		})
	case '"':
		t.kind = kindString
		t.text, err = r.text()
	default:
		end := bytes.IndexAny(r.data[r.at:], ",]} \t\r\n")
		if end < 0 {
			end = len(r.data) - r.at
		}
		t.text = string(r.data[r.at : r.at+end])
		r.at += end
		switch first {
		case 'n':
			t.kind = kindNull
		case 't', 'f':
			t.kind = kindBool
		default:
			t.kind = kindNumber
		}
	}
	t.raw = r.data[start:r.at]
	return t, err
}

// each reads the elements up to the closing bracket.
func (r *treeReader) each(closing byte, element func() error) error {
	r.at++
	for r.peek() != closing {
		if r.data[r.at] == ',' {
			r.at++
			continue
		}
		if err := element(); err != nil {
			return err
		}
	}
	r.at++
	return nil
}

// text reads a string.
func (r *treeReader) text() (string, error) {
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
		return string(raw[1 : len(raw)-1]), nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", errNotJSON
	}
	return text, nil
}
