package tomledit

import (
	"bytes"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// addTable adds a table with a header and one key, behind the section of its closest relative.
func (d *Document) addTable(path []string, assignment string) (*Document, error) {
	relative := len(d.statements) - 1
	if relative >= 0 {
		relative = d.statements[relative].section
	}
	closest := 0
	for i := range d.statements {
		if s := &d.statements[i]; s.header {
			if c := common(s.node.path(nil), path); c > 0 && c >= closest {
				closest, relative = c, i
			}
		}
	}
	at, rest := d.reach(path)
	spelled := slices.Concat(at.spelled(nil), renderKeys(rest, d.keyQuote))
	indent := d.headerIndent(path)
	lines := []string{
		indent + "[" + strings.Join(spelled, ".") + "] " + signature,
		indent + d.keyIndent() + assignment + " " + signature,
	}
	place := d.sectionEnd(relative)
	if place > 0 {
		lines = append([]string{""}, lines...)
	}
	return d.insert(place, lines)
}

// common counts the keys that two paths begin with.
func common(a, b []string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// sectionEnd returns where a section's text ends: behind its last key or header and the comments that are its own.
// noStatement is what stands above the first header.
func (d *Document) sectionEnd(section int) int {
	next := section + 1
	for next < len(d.statements) && !d.statements[next].header {
		next++
	}
	start, limit := 0, len(d.data)
	if next > 0 {
		start = d.lines(&d.statements[next-1]).to
	}
	if next < len(d.statements) {
		limit = d.lines(&d.statements[next]).from
	}
	end := start
	for _, block := range d.comments(span{start, limit}) {
		above := block.from == start && start > 0
		below := block.to == limit && limit < len(d.data)
		if limit == len(d.data) || above && !below || above == below && d.holdsCommentedOut(block, unstable.KeyValue, unstable.Table, unstable.ArrayTable) {
			end = block.to
		}
	}
	return end
}

// comments returns the blocks of comment lines between two statements. Nothing but blank lines is between them.
func (d *Document) comments(s span) []span {
	var blocks []span
	open := false
	for at := s.from; at < s.to; at = d.lineEnd(at) {
		line := span{at, d.lineEnd(at)}
		switch {
		case d.isBlank(line):
			open = false
		case open:
			blocks[len(blocks)-1].to = line.to
		default:
			open = true
			blocks = append(blocks, line)
		}
	}
	return blocks
}

// holdsCommentedOut reports whether a line of a block would be one of the kinds if uncommented.
func (d *Document) holdsCommentedOut(block span, kinds ...unstable.Kind) bool {
	for line := range bytes.Lines(d.data[block.from:block.to]) {
		if slices.Contains(kinds, commentedOut(line)) {
			return true
		}
	}
	return false
}

// rootPlace returns where the first key above all headers goes: behind the comments that open the document, but before
// those that belong to the first header, and before a header that is commented out, so that uncommenting it does not
// move our key into its table. Zero is the top.
func (d *Document) rootPlace() int {
	limit := len(d.data)
	if len(d.statements) > 0 {
		limit = d.lines(&d.statements[0]).from
	}
	place := 0
	for _, block := range d.comments(span{0, limit}) {
		if block.to == limit && limit < len(d.data) || d.holdsCommentedOut(block, unstable.Table, unstable.ArrayTable) {
			break
		}
		place = block.to
	}
	return place
}

// keyIndent is how much deeper than its header the document's first key in a section stands.
func (d *Document) keyIndent() string {
	for i := range d.statements {
		if s := &d.statements[i]; !s.header && s.section != noStatement {
			return d.deeper(s, &d.statements[s.section])
		}
	}
	return d.tableIndent()
}

// tableIndent is how much deeper than the header of its table the document's first header of a table in it stands.
func (d *Document) tableIndent() string {
	for i := range d.statements {
		s := &d.statements[i]
		if above := s.node.parent; s.header && above != d.root && above.form == headed {
			return d.deeper(s, &d.statements[above.home])
		}
	}
	return ""
}

func (d *Document) indentOf(s *statement) string { return d.indent(s.body.from) }

func (d *Document) deeper(s, than *statement) string {
	if more, ok := strings.CutPrefix(d.indentOf(s), d.indentOf(than)); ok {
		return more
	}
	return ""
}

// headerIndent is where the header of a new table begins: under its siblings', or else as much deeper than the header of the
// table it is in as is usual in the document, or less deep than the header of the first table in it.
func (d *Document) headerIndent(path []string) string {
	at, rest := d.reach(path)
	parent, depth := at, len(rest)
	if depth == 0 {
		parent, depth = at.parent, 1
	}
	if depth == 1 {
		for _, sibling := range slices.Backward(parent.children) {
			if sibling.form == headed {
				return d.indentOf(&d.statements[sibling.home])
			}
		}
	}
	for ; parent != d.root; parent, depth = parent.parent, depth+1 {
		if parent.form == headed {
			return d.indentOf(&d.statements[parent.home]) + strings.Repeat(d.tableIndent(), depth)
		}
	}
	if len(rest) > 0 {
		return ""
	}
	below := &d.statements[at.home]
	less := strings.Repeat(d.tableIndent(), len(below.node.path(at)))
	return strings.TrimSuffix(d.indentOf(below), less)
}

// insert adds lines at the end of a line, and keeps the document's last line as it is: with or without a line end.
func (d *Document) insert(at int, lines []string) (*Document, error) {
	newline := d.newline()
	text := ""
	for _, line := range lines {
		text += line + newline
	}
	if at > 0 && d.data[at-1] != '\n' {
		text = newline + text[:len(text)-len(newline)]
	}
	return d.apply(edit{span{at, at}, text})
}
