package document

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Path is the path of a field, such as spec.servers[0].address or spec.parameters["net.ipv4.ip_forward"]. The empty
// Path is the document. A field has one path, whatever the type of the mapping: testdata/paths.jsonl has examples.
type Path string

// Field is the entry name of the mapping at p: .name when it is a plain word, else ["name"].
func (p Path) Field(name string) Path {
	switch {
	case !isWord(name):
		return p + "[" + Path(quote(name)) + "]"
	case p == "":
		return Path(name)
	default:
		return p + "." + Path(name)
	}
}

// Index is item i, counted from 0, of the list at p.
func (p Path) Index(i int) Path { return p + "[" + Path(strconv.Itoa(i)) + "]" }

// Key is the entry k of the mapping at p whose keys are data. It is written like a field.
func (p Path) Key(k string) Path { return p.Field(k) }

// quote writes a name as a JSON string in which quotes, backslashes and characters that do not show are escaped, the latter
// by \u and four digits.
func quote(name string) string {
	out := []byte{'"'}
	for _, r := range name {
		switch {
		case r == '"' || r == '\\':
			out = append(out, '\\', byte(r))
		case r < ' ' || r >= 0x7F && mustEscape(r):
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = utf8.AppendRune(out, r)
		}
	}
	return string(append(out, '"'))
}

// unquote cuts a JSON string off the beginning of text.
func unquote(text string) (name, rest string, ok bool) {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			err := json.Unmarshal([]byte(text[:i+1]), &name)
			return name, text[i+1:], err == nil
		}
	}
	return "", "", false
}

// join is the path rest below p.
func (p Path) join(rest string) Path {
	if p == "" || rest == "" || rest[0] == '[' {
		return p + Path(rest)
	}
	return p + "." + Path(rest)
}

// Within says whether a field is the ancestor or lies in it. Every field lies in the document, whose path is empty.
func Within(field, ancestor string) bool {
	rest, found := strings.CutPrefix(field, ancestor)
	return found && (rest == "" || ancestor == "" || rest[0] == '.' || rest[0] == '[')
}

func isWord(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	return s != ""
}

// step is one part of a path: a name, or an index when name is not set.
type step struct {
	name  string
	index int
	named bool
}

func (s step) in(p Path) Path {
	if s.named {
		return p.Field(s.name)
	}
	return p.Index(s.index)
}

// nextStep cuts the first step off a path. ok is false at the end of the path and where it is malformed.
func nextStep(path string) (s step, rest string, ok bool) {
	if inner, bracket := strings.CutPrefix(path, "["); bracket {
		if strings.HasPrefix(inner, `"`) {
			name, rest, valid := unquote(inner)
			rest, ok = strings.CutPrefix(rest, "]")
			return step{name: name, named: true}, rest, ok && valid
		}
		digits, rest, ok := strings.Cut(inner, "]")
		index, err := strconv.Atoi(digits)
		return step{index: index}, rest, ok && err == nil && strconv.Itoa(index) == digits && index >= 0
	}
	path = strings.TrimPrefix(path, ".")
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	return step{name: path[:end], named: true}, path[end:], end > 0
}
