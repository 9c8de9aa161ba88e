package timeline

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/machineadm/machineadm/host/reporting/words"
)

// DefaultWidth is the width of the text without a terminal, in columns.
const DefaultWidth = 80

// look is how a kind is written: its letter, and the parameters of an ECMA-48 SGR sequence.
type look struct {
	kind   Kind
	letter rune
	color  string
}

// looks are the kinds in the order of the legend. The letters are ASCII, because a console at boot may have no other characters.
func looks() []look {
	return []look{
		{Reboot, 'r', "30;45"},
		{Boot, 'b', "30;44"},
		{Prepare, 'o', "30;47"},
		{Resolve, 'v', "30;46"},
		{Start, 's', "30;46"},
		{Plan, 'p', "30;46"},
		{Apply, '=', "30;47"},
		{Finish, 'f', "30;47"},
		{Wait, '.', "30;43"},
		{Changed, '#', "30;42"},
		{Unchanged, '-', "30;47"},
		{Failed, 'X', "37;41"},
		{Cut, '?', "30;43"},
		{Running, '>', "30;42"},
	}
}

// Text writes a picture for a terminal of this width, in columns.
func Text(w io.Writer, l Layout, width int, color bool) error {
	t := textWriter{Layout: l, color: color, looks: looks()}
	longest, notes := 0, 0
	for _, r := range l.Rows {
		longest = max(longest, utf8.RuneCountInString(r.Label)+2*r.Depth)
		if n := utf8.RuneCountInString(r.note()); n <= longestNote {
			notes = max(notes, n)
		}
	}
	width = max(width, narrowest)
	t.width = width
	t.labels = min(longest, width*2/5)
	t.cells = max(10, width-t.labels-notes-2)
	t.write()
	_, err := io.WriteString(w, t.b.String())
	return err
}

// narrowest is the width below which the lines of a picture are wider than the terminal.
const narrowest = 60

// longestNote is the length of a note that stands behind its bar. A longer one has lines of its own.
const longestNote = 22

type textWriter struct {
	Layout
	b                    strings.Builder
	color                bool
	looks                []look
	width, labels, cells int
}

func (t *textWriter) write() {
	t.paragraph("", t.Title)
	fmt.Fprintf(&t.b, "from %s, %s\n\n", t.Begin.Format(words.TimeFormat), duration(t.Length))
	t.b.WriteString(strings.TrimRight(strings.Repeat(" ", t.labels+1)+t.ticks(), " ") + "\n")
	used := map[Kind]bool{}
	for _, r := range t.Rows {
		label := cut(strings.Repeat("  ", r.Depth)+r.Label, t.labels)
		line := label + strings.Repeat(" ", t.labels-utf8.RuneCountInString(label)+1)
		cells := t.row(r.Bars)
		for _, kind := range cells {
			used[kind] = true
		}
		note := r.note()
		behind := utf8.RuneCountInString(note) <= longestNote
		line += t.paint(cells)
		if behind {
			line += " " + note
		}
		t.b.WriteString(strings.TrimRight(line, " ") + "\n")
		if !behind {
			t.paragraph("  ", note)
		}
	}
	if t.Hidden > 0 {
		t.paragraph("", fmt.Sprintf("%s left out, the longest of %s", words.Counted(t.Hidden, "row"), duration(t.Longest)))
	}
	column := 0
	for _, look := range t.looks {
		size := len(look.kind) + 4
		switch {
		case !used[look.kind]:
			continue
		case column == 0 || column+size > t.width:
			t.b.WriteString("\n")
			column = 0
		default:
			t.b.WriteString("  ")
		}
		column += size
		t.b.WriteString(t.colored(look, string(look.letter)) + " " + string(look.kind))
	}
	t.b.WriteString("\n")
}

// paragraph writes a text in lines that fit.
func (t *textWriter) paragraph(indent, text string) {
	line := indent
	for word := range strings.FieldsSeq(text) {
		if line != indent && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > t.width {
			t.b.WriteString(line + "\n")
			line = indent
		}
		if line != indent {
			line += " "
		}
		line += word
	}
	t.b.WriteString(line + "\n")
}

// row returns the kind in each cell of a row. What is shorter than a cell shows where nothing else is, or a short plan, or
// where it failed.
func (t *textWriter) row(bars []Bar) []Kind {
	cells, solid := make([]Kind, t.cells), make([]bool, t.cells)
	at := func(d time.Duration) int { return int((float64(d)/float64(t.Length))*float64(t.cells) + 0.5) }
	short := func(b Bar) bool { return at(b.End) <= at(b.Start) }
	for _, b := range bars {
		for i := at(b.Start); i < min(at(b.End), t.cells); i++ {
			cells[i], solid[i] = b.Kind, true
		}
	}
	for _, b := range bars {
		i := min(at(b.Start), t.cells-1)
		if short(b) && (!solid[i] && (cells[i] == "" || cells[i] == Plan) || b.Kind == Failed || b.Kind == Cut) {
			cells[i] = b.Kind
		}
	}
	return cells
}

// paint returns cells as text, with one color sequence for neighbors of one kind.
func (t *textWriter) paint(cells []Kind) string {
	var b strings.Builder
	for len(cells) > 0 {
		n := slices.IndexFunc(cells, func(k Kind) bool { return k != cells[0] })
		if n < 0 {
			n = len(cells)
		}
		i := slices.IndexFunc(t.looks, func(look look) bool { return look.kind == cells[0] })
		if i < 0 {
			b.WriteString(strings.Repeat(" ", n))
		} else {
			b.WriteString(t.colored(t.looks[i], strings.Repeat(string(t.looks[i].letter), n)))
		}
		cells = cells[n:]
	}
	return b.String()
}

func (t *textWriter) colored(look look, text string) string {
	if !t.color {
		return text
	}
	return "\x1b[" + look.color + "m" + text + "\x1b[0m"
}

// ticks returns the times of the axis, at least eight cells apart.
func (t *textWriter) ticks() string {
	line := []rune(strings.Repeat(" ", t.cells))
	step := step(t.Length, t.cells/8)
	for d := time.Duration(0); d <= t.Length; d += step {
		at := int(float64(d) / float64(t.Length) * float64(t.cells))
		text := []rune(words.Brief(d))
		if at+len(text) <= len(line) {
			copy(line[at:], text)
		}
	}
	return string(line)
}

// step returns a round time by which an axis has at most this many parts.
func step(length time.Duration, parts int) time.Duration {
	for _, ms := range []int{
		1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000,
	} {
		if out := time.Duration(ms) * time.Millisecond; length <= out*time.Duration(parts) {
			return out
		}
	}
	for out := time.Hour; ; out *= 2 {
		if length <= out*time.Duration(parts) {
			return out
		}
	}
}

// cut shortens a text to a number of characters.
func cut(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:max(0, most-2)]) + ".."
}
