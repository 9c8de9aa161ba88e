package document

import (
	"strconv"
	"strings"
)

// Path is the path of a field, such as spec.servers[0].address or spec.parameters["net.ipv4.ip_forward"]. The empty
// Path is the document.
type Path string

// Field is the field name of the mapping at p. A name that is not a plain word is written as Key writes it.
func (p Path) Field(name string) Path {
	switch {
	case !isWord(name):
		return p.Key(name)
	case p == "":
		return Path(name)
	default:
		return p + "." + Path(name)
	}
}

// Index is item i, counted from 0, of the list at p.
func (p Path) Index(i int) Path { return p + "[" + Path(strconv.Itoa(i)) + "]" }

// Key is the entry k of the mapping at p whose keys are data.
func (p Path) Key(k string) Path { return p + "[" + Path(strconv.Quote(k)) + "]" }

// join is the path rest below p.
func (p Path) join(rest string) Path {
	if p == "" || rest == "" || rest[0] == '[' {
		return p + Path(rest)
	}
	return p + "." + Path(rest)
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
		if quoted, err := strconv.QuotedPrefix(inner); err == nil {
			name, err := strconv.Unquote(quoted)
			rest, ok = strings.CutPrefix(inner[len(quoted):], "]")
			return step{name: name, named: true}, rest, ok && err == nil
		}
		digits, rest, ok := strings.Cut(inner, "]")
		index, err := strconv.Atoi(digits)
		return step{index: index}, rest, ok && err == nil && index >= 0
	}
	path = strings.TrimPrefix(path, ".")
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	return step{name: path[:end], named: true}, path[end:], end > 0
}
