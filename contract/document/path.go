package document

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Path is the path of a field, such as spec.servers[0].address or spec.parameters["net.ipv4.ip_forward"]. The empty
// Path is the document. The notation does not depend on the type of the mapping; see testdata/paths.jsonl.
type Path string

// PathOf returns the path of the entry that the steps lead to: a string is the name in a mapping, an int the index in a list.
func PathOf(steps ...any) Path {
	var p Path
	for _, step := range steps {
		switch s := step.(type) {
		case string:
			p = p.Field(s)
		case int:
			p = p.Index(s)
		}
	}
	return p
}

// Field returns the path of an entry of the mapping at p: .name for a plain word, else ["name"].
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

// Index returns the path of the 0-based item i of the list at p.
func (p Path) Index(i int) Path { return p + "[" + Path(strconv.Itoa(i)) + "]" }

// Key returns the path of an entry of the mapping at p whose keys are data, in the notation of Field.
func (p Path) Key(k string) Path { return p.Field(k) }

// quote returns a name as a JSON string. It escapes quotes, backslashes and, by \u and four digits, invisible characters.
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

// unquote splits a JSON string from the start of text.
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

// join returns the path rest below p.
func (p Path) join(rest string) Path {
	if p == "" || rest == "" || rest[0] == '[' {
		return p + Path(rest)
	}
	return p + "." + Path(rest)
}

// Within reports whether a field is the ancestor or a part of it. Every field is a part of the document, the empty path.
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

// step is one part of a path: a name if named, else an index.
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

// nextStep splits the first step from a path. ok is false for an empty or malformed path, such as one that is not UTF-8.
func nextStep(path string) (s step, rest string, ok bool) {
	if !utf8.ValidString(path) {
		return step{}, "", false
	}
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
