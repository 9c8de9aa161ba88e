package reporting

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// The columns of the list: state, duration, text. A terminal that is too narrow for columns gets them one after the
// other.
const (
	stateCells   = 14 // "not applicable"
	tookCells    = 7
	narrowest    = 60 // with columns
	tookFrom     = 40 // with durations
	innerIndent  = "  "
	longestShown = 4096 // bytes of one text; all of it is in the report
)

// row is an entry of the list: one line, or more when its text must not be cut.
type row struct {
	state string
	style style // of the state
	took  string
	text  string
	inner bool // it belongs to the document above it
	whole bool // its text goes on in further lines instead of being cut
	faint bool // all of it
	bare  bool // a text without columns; the state is its beginning
}

// span is a piece of a line in one style.
type span struct {
	text  string
	style style
}

// line is one line of a terminal.
type line []span

// cells is how many cells a line fills.
func (l line) cells() int {
	n := 0
	for _, s := range l {
		n += cells(s.text)
	}
	return n
}

// cut shortens a line to a number of cells.
func (l line) cut(most int) line {
	if l.cells() <= most {
		return l
	}
	var out line
	for _, s := range l {
		n := cells(s.text)
		if n >= most { // something follows, if only the end of this piece
			return append(out, span{cut(s.text+ellipsis, most), s.style})
		}
		out, most = append(out, s), most-n
	}
	return out
}

// paint is a line as it is written.
func (l line) paint(c Color) string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(c.paint(s.style, s.text))
	}
	return b.String()
}

// lines are those of a row on a terminal of this width.
func (r row) lines(width int) []line {
	if r.bare {
		return r.paragraph(width)
	}
	head, body := r.head(width), plain
	if r.faint {
		body = faint
	}
	room := width - head.cells()
	if !r.whole || room < 2 {
		return []line{append(head, span{r.text, body}).cut(width)}
	}
	var out []line
	for i, text := range fold(r.text, room) {
		if i > 0 {
			head = line{{text: strings.Repeat(" ", width-room)}}
		}
		out = append(out, append(head, span{text, body}))
	}
	return out
}

// paragraph is a text over the whole width.
func (r row) paragraph(width int) []line {
	var out []line
	for _, text := range fold(r.state+r.text, width) {
		out = append(out, line{{text: text}}.cut(width))
	}
	if rest, ok := strings.CutPrefix(out[0][0].text, r.state); ok {
		out[0] = line{{r.state, r.style}, {text: rest}}
	}
	return out
}

// head is what stands before the text.
func (r row) head(width int) line {
	indent, style := "", r.style
	if r.inner {
		indent = innerIndent
	}
	if r.faint {
		style = faint
	}
	if width < narrowest {
		out := line{{text: indent}, {r.state, style}, {text: " "}}
		if r.took != "" && width >= tookFrom {
			out = append(out, span{r.took + " ", faint})
		}
		return out
	}
	pad := strings.Repeat(" ", max(0, stateCells-cells(indent)-cells(r.state))+1+max(0, tookCells-cells(r.took)))
	return line{{text: indent}, {r.state, style}, {text: pad}, {r.took, faint}, {text: "  " + indent}}
}

// shown escapes a text of somebody else's, of which no more is kept than a screen can show.
func shown(text string) string {
	if len(text) > longestShown {
		end := longestShown
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + ellipsis
	}
	return Escape(text)
}

// took is a duration in a column. What goes on is counted in whole seconds.
func took(d time.Duration, goesOn bool) string {
	switch {
	case goesOn && d < time.Second:
		return ""
	case d < time.Millisecond:
		return "<1ms"
	case goesOn || d >= time.Minute:
		return brief(d.Truncate(time.Second))
	case d >= time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	default:
		return brief(d.Round(time.Millisecond))
	}
}
