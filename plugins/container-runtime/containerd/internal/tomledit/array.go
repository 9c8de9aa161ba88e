package tomledit

import "strings"

// editArray changes the values of an array over several lines. It keeps the comments, the layout, and the values before the
// first and behind the last difference.
func (d *Document) editArray(at *node, have, want []any) []edit {
	old := d.elements(at.value)
	same := 0
	for same < len(have) && same < len(want) && equal(have[same], want[same]) {
		same++
	}
	tail := 0
	for tail < len(have)-same && tail < len(want)-same && equal(have[len(have)-1-tail], want[len(want)-1-tail]) {
		tail++
	}
	quote := d.textQuote
	if len(old) > 0 {
		quote = d.quoteOf(old[0])
	}
	var edits []edit
	i := same
	for ; i < len(have)-tail && i < len(want)-tail; i++ {
		edits = append(edits, edit{old[i], render(want[i], quote)})
	}
	var more []string
	for _, value := range want[i : len(want)-tail] {
		more = append(more, render(value, quote))
	}
	if len(more) > 0 {
		edits = append(edits, d.addElements(at.value, old, i, more)...)
	}
	for j := i; j < len(have)-tail; j++ {
		for _, gone := range d.cut(old[j]) {
			last := len(edits) - 1
			if last < 0 || edits[last].text != "" || edits[last].to < gone.from {
				edits = append(edits, gone)
				continue
			}
			// They meet. The last one of a line includes the blank before it, which may be gone already.
			if gone.from < edits[last].to {
				edits[last].from = d.backOverBlanks(edits[last].from)
			}
			edits[last].to = gone.to
		}
	}
	return edits
}

// addElements adds values to an array of which the given number stays in front of them.
func (d *Document) addElements(array span, old []span, front int, more []string) []edit {
	switch {
	case len(old) == 0:
		return []edit{{span{array.from + 1, array.from + 1}, strings.Join(more, ", ")}}
	case front == 0 && d.beginsLine(old[0].from):
		// Above a comment that belongs to the value which was the first.
		begin := d.contentEnd(array.from)
		between := d.newline() + d.indent(old[0].from)
		return []edit{{span{begin, begin}, between + strings.Join(more, ","+between) + ","}}
	case front == 0:
		begin := old[0].from
		return []edit{{span{begin, begin}, strings.Join(more, ", ") + ", "}}
	}
	before := old[front-1]
	next, comma := d.overFiller(before.to)
	end := d.contentEnd(before.to)
	if !d.beginsLine(before.from) || next < end || comma > end {
		return []edit{{span{before.to, before.to}, ", " + strings.Join(more, ", ")}}
	}
	between := d.newline() + d.indent(before.from)
	text := between + strings.Join(more, ","+between)
	if comma >= 0 {
		return []edit{{span{end, end}, text + ","}}
	}
	return []edit{{span{before.to, before.to}, ","}, {span{end, end}, text}}
}

func (d *Document) beginsLine(at int) bool { return d.backOverBlanks(at) == d.lineStart(at) }

// cut removes a value of an array or a pair of an inline table, the comma behind it, and the line where nothing else is on
// it. A comment between the two stays.
func (d *Document) cut(s span) []edit {
	_, comma := d.overFiller(s.to)
	if comma >= 0 && !d.isBlank(span{s.to, comma}) {
		return []edit{{span: s}, {span: span{comma, comma + 1}}}
	}
	end := d.overBlanks(max(s.to, comma+1))
	if end < d.contentEnd(end) {
		return []edit{{span: span{s.from, end}}}
	}
	if d.beginsLine(s.from) {
		return []edit{{span: span{d.lineStart(s.from), d.lineEnd(end)}}}
	}
	return []edit{{span: span{d.backOverBlanks(s.from), max(s.to, comma+1)}}}
}
