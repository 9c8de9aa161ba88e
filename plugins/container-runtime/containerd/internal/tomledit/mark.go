package tomledit

import (
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// signature begins every mark.
const signature = "# machineadm"

// mark is the end of a comment, which describes what Set did to the statement.
type mark struct {
	// whole marks a statement that Set added.
	whole bool
	items []item
	// place is where the mark stands in the document, with the blank before it; empty at the end of the line when there
	// is no mark.
	place span
}

// item is a part that Set added or changed in a foreign statement.
type item struct {
	// path leads there from the statement's value; empty, it is that value itself.
	path []string
	// changed is set where only the value is ours, not the key.
	changed bool
}

func (d *Document) mark(s *statement) mark {
	end := d.contentEnd(max(s.body.to, s.comment.to))
	none := mark{place: span{end, end}}
	comment := string(d.data[s.comment.from:s.comment.to])
	at := strings.LastIndex(comment, signature)
	if at < 0 {
		return none
	}
	m, ok := parseMark(strings.TrimRight(comment[at+len(signature):], " \t"), s.header)
	if !ok {
		return none
	}
	m.place = span{s.comment.from + at, s.comment.to}
	if before := m.place.from - 1; d.data[before] == ' ' {
		m.place.from = before
	}
	return m
}

func parseMark(text string, header bool) (mark, bool) {
	if text == "" || header {
		return mark{whole: true}, text == ""
	}
	text, ok := strings.CutPrefix(text, ": ")
	if !ok {
		return mark{}, false
	}
	var m mark
	for _, part := range strings.Split(text, ", ") {
		verb, key, _ := strings.Cut(part, " ")
		path, ok := parseKey(key)
		if verb != "changed" && (verb != "added" || key == "") || !ok {
			return mark{}, false
		}
		m.items = append(m.items, item{path: path, changed: verb == "changed"})
	}
	return m, true
}

// parseKey reads a dotted key; the empty text is no key at all.
func parseKey(text string) (path []string, ok bool) {
	if text == "" {
		return nil, true
	}
	var parser unstable.Parser
	parser.Reset([]byte(text + "=0"))
	if !parser.NextExpression() || int(parser.Expression().Raw.Length) != len(text)+2 {
		return nil, false
	}
	for it := parser.Expression().Key(); it.Next(); {
		path = append(path, string(it.Node().Data))
	}
	return path, true
}

// text is the mark as it stands at the end of a line.
func (m mark) text() string {
	switch {
	case m.whole:
		return " " + signature
	case len(m.items) == 0:
		return ""
	}
	var parts []string
	for _, i := range m.items {
		verb := "added"
		if i.changed {
			verb = "changed"
		}
		// No comma of a key divides the list, and no sign of one begins a mark.
		key := strings.NewReplacer(",", `\u002C`, "#", `\u0023`).Replace(dottedKey(i.path))
		parts = append(parts, strings.TrimRight(verb+" "+key, " "))
	}
	return " " + signature + ": " + strings.Join(parts, ", ")
}

// covers reports whether the mark already has the item.
func (m mark) covers(i item) bool {
	return m.whole || slices.ContainsFunc(m.items, func(known item) bool {
		if known.changed {
			return i.changed && slices.Equal(known.path, i.path)
		}
		return len(known.path) <= len(i.path) && slices.Equal(known.path, i.path[:len(known.path)])
	})
}

// with returns the edit that adds an item to the mark of a statement; none where the mark has it.
func (d *Document) with(s *statement, i item) []edit {
	m := d.mark(s)
	if m.covers(i) {
		return nil
	}
	m.items = append(m.items, i)
	return []edit{{m.place, m.text()}}
}

// without returns the edit that removes the items at a path and below it from the mark of a statement.
func (d *Document) without(s *statement, path []string) []edit {
	m := d.mark(s)
	kept := slices.DeleteFunc(slices.Clone(m.items), func(i item) bool {
		return len(path) <= len(i.path) && slices.Equal(path, i.path[:len(path)])
	})
	if len(kept) == len(m.items) {
		return nil
	}
	m.items = kept
	return []edit{{m.place, m.text()}}
}

// Owned is something that Set has marked.
type Owned struct {
	Path []string
	// Changed is set for a foreign key whose value Set replaced. Delete must not remove it.
	Changed bool
}

// Owned returns everything that has a mark, in the order of the document. A header that Set added on the way to a key is not
// listed: it goes with the last key of its section.
func (d *Document) Owned() []Owned {
	var all []Owned
	for i := range d.statements {
		s := &d.statements[i]
		m := d.mark(s)
		path := s.node.path(nil)
		if _, rest := d.reach(path); len(rest) > 0 {
			// Set does not edit arrays of tables.
			continue
		}
		if m.whole && !s.header {
			all = append(all, Owned{Path: path})
		}
		for _, it := range m.items {
			// An editor may have removed the key and left the mark.
			if at := slices.Concat(path, it.path); d.Has(at...) {
				all = append(all, Owned{Path: at, Changed: it.changed})
			}
		}
	}
	return all
}
