package tomledit

import (
	"bytes"
	"slices"
)

// Delete removes the key or table at a path, with everything in it, its comment at the end of the line, and its marks.
// Other comments stay. Where Set added the key, the document is then as it was before: the header that Set added on the
// way goes with the last key of its section. Nothing happens when there is nothing at the path. What is in an array of
// tables is not edited; the array as a whole may go. The error is of type *Error.
func (d *Document) Delete(path ...string) error {
	at, rest := d.reach(path)
	if len(path) == 0 {
		return &Error{Message: "the document itself cannot be deleted"}
	}
	if len(rest) > 0 {
		if at.form == series {
			return about(path, d.obstacle(at, rest))
		}
		return nil
	}
	next := d
	var err error
	if at.parent.container() == nil {
		next, err = d.removeStatements(at)
	}
	for err == nil && at.parent.container() != nil {
		if next, err = next.removePair(at); err != nil {
			break
		}
		if at, rest = next.reach(path); len(rest) > 0 {
			break
		}
	}
	if err != nil {
		return about(path, err)
	}
	*d = *next
	return nil
}

// removePair removes the first key/value of an inline table that is at or below a node.
func (d *Document) removePair(at *node) (*Document, error) {
	table := at.parent.container()
	all := table.pairs()
	i := slices.IndexFunc(all, func(n *node) bool { return n.within(at) })
	s := &d.statements[at.home]
	return d.apply(append(d.cutPair(table, all, i), d.without(s, at.path(s.node))...)...)
}

// cutPair is the inverse of addInline for a pair in that form.
func (d *Document) cutPair(table *node, all []*node, i int) []edit {
	gone := all[i].pair
	near := func(from, to int) bool { return len(bytes.Trim(d.data[from:to], " \t,")) == 0 }
	_, comma := d.overFiller(gone.to)
	switch {
	case i > 0 && near(all[i-1].pair.to, gone.from):
		gone.from = all[i-1].pair.to
	case len(all) == 1 && near(table.value.from+1, gone.from) && near(gone.to, max(gone.to, comma)):
		// A comma behind the last pair is TOML 1.1.
		gone = span{table.value.from + 1, max(gone.to, comma+1)}
	default:
		return d.cut(gone)
	}
	return []edit{{span: gone}}
}

// removeStatements removes every statement at or below a node.
func (d *Document) removeStatements(at *node) (*Document, error) {
	gone := make([]bool, len(d.statements))
	for i := range d.statements {
		gone[i] = d.statements[i].node.within(at)
	}
	for i := range d.statements {
		if s := &d.statements[i]; s.header && !gone[i] && d.cameWithKey(s) && d.emptied(i, gone) {
			gone[i] = true
		}
	}
	var runs []edit
	for i := range d.statements {
		if !gone[i] {
			continue
		}
		run := d.withEmptyLine(i)
		if last := len(runs) - 1; last >= 0 && runs[last].to >= run.from {
			runs[last].to = run.to
		} else {
			runs = append(runs, edit{span: run})
		}
	}
	if last := &runs[len(runs)-1]; last.to == len(d.data) && d.data[last.to-1] != '\n' && last.from > 0 {
		last.from = d.contentEnd(d.lineStart(last.from - 1))
	}
	return d.apply(runs...)
}

// cameWithKey reports whether Set added a header on the way to a key.
func (d *Document) cameWithKey(s *statement) bool {
	m := d.mark(s)
	return m.whole && m.place.from <= s.comment.from
}

// emptied reports whether a section has statements and loses all of them.
func (d *Document) emptied(header int, gone []bool) bool {
	i := header + 1
	for i < len(d.statements) && !d.statements[i].header && gone[i] {
		i++
	}
	return i > header+1 && (i == len(d.statements) || d.statements[i].header)
}

// withEmptyLine returns the lines of a statement, with the empty one that Set put between it and its neighbors.
func (d *Document) withEmptyLine(i int) span {
	s := &d.statements[i]
	lines := d.lines(s)
	if !d.mark(s).whole {
		return lines
	}
	if s.header {
		if before := d.lineStart(max(lines.from-1, 0)); d.contentEnd(before) == before {
			lines.from = before
		}
		return lines
	}
	alone := s.section == noStatement && i == 0 && (len(d.statements) == 1 || d.statements[1].header)
	if alone && lines.from == 0 && d.contentEnd(lines.to) == lines.to && !d.isBlank(span{lines.to, len(d.data)}) {
		lines.to = d.lineEnd(lines.to)
	}
	return lines
}
