package terminal

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// emulator is a small terminal: what it is sent becomes rows, the topmost of which scroll into a history. It folds long
// lines and unfolds them when it becomes wider, as most terminals do now. What it does not know, it takes for a mistake.
type emulator struct {
	width, height int
	history       []row
	rows          []row
	x, y          int
	full          bool // the last cell of the row is filled: the next letter wraps
	pending       []byte
	colors        int      // how many sequences for colours came
	unknown       []string // what it does not know
}

// row is a line, or a part of one that was too long.
type row struct {
	cells []string // what stands in each; the second cell of a wide letter is empty
	goes  bool     // the line goes on in the next row
}

func newEmulator(width, height int) *emulator {
	return &emulator{width: width, height: height, rows: make([]row, height)}
}

// Write takes what a program sends; a sequence may come in pieces.
func (e *emulator) Write(p []byte) {
	e.pending = append(e.pending, p...)
	for len(e.pending) > 0 {
		n := e.next(e.pending)
		if n == 0 {
			return
		}
		e.pending = e.pending[n:]
	}
}

// next takes one letter or one sequence, and returns its length; 0 when it is not complete.
func (e *emulator) next(p []byte) int {
	switch p[0] {
	case '\r':
		e.x, e.full = 0, false
	case '\n':
		e.newline()
	case '\t':
		e.x = min(e.width-1, e.x/8*8+8)
	case '\x1b':
		return e.escape(p)
	default:
		if !utf8.FullRune(p) {
			return 0
		}
		r, n := utf8.DecodeRune(p)
		e.put(r)
		return n
	}
	return 1
}

func (e *emulator) newline() {
	e.full = false
	if e.y++; e.y == e.height {
		e.y--
		e.history = append(e.history, e.rows[0])
		e.rows = append(slices.Delete(e.rows, 0, 1), row{})
	}
}

func (e *emulator) put(r rune) {
	if r < ' ' || r == 0x7f {
		e.unknown = append(e.unknown, fmt.Sprintf("%q", r))
		return
	}
	n := letterWidth(r)
	if n == 0 {
		if cells := e.rows[e.y].cells; e.x > 0 && e.x <= len(cells) {
			cells[e.x-1] += string(r)
		}
		return
	}
	if e.full || e.x+n > e.width {
		e.rows[e.y].goes = true
		e.newline()
		e.x = 0
	}
	for len(e.rows[e.y].cells) < e.x+n {
		e.rows[e.y].cells = append(e.rows[e.y].cells, " ")
	}
	e.rows[e.y].cells[e.x] = string(r)
	if n == 2 {
		e.rows[e.y].cells[e.x+1] = ""
	}
	e.x += n
	if e.x == e.width {
		e.x, e.full = e.width-1, true
	}
}

// letterWidth knows what the tests write, and not from the tables that the product uses.
func letterWidth(r rune) int {
	switch {
	case unicode.Is(unicode.Mn, r):
		return 0
	case 0x1100 <= r && r <= 0x115f, 0x2e80 <= r && r <= 0xa4cf, 0xac00 <= r && r <= 0xd7a3, 0xff01 <= r && r <= 0xff60, 0x1f300 <= r && r <= 0x1faff:
		return 2
	default:
		return 1
	}
}

// escape takes a control sequence: ESC [ parameters letter.
func (e *emulator) escape(p []byte) int {
	if len(p) < 3 {
		return 0
	}
	end := 2
	for end < len(p) && (p[end] < '@' || p[end] > '~') {
		end++
	}
	if end == len(p) {
		return 0
	}
	n := 1
	_, err := fmt.Sscanf(string(p[2:end]), "%d", &n)
	switch {
	case p[1] != '[':
		e.unknown = append(e.unknown, fmt.Sprintf("%q", p[:end+1]))
	case p[end] == 'm':
		e.colors++
	case p[end] == 'A' && (err == nil || end == 2):
		e.y, e.full = max(0, e.y-n), false
	case p[end] == 'K' && end == 2:
		e.eraseLine()
	case p[end] == 'J' && end == 2:
		if e.x == 0 && e.y == 0 { // as tmux does
			e.history = append(e.history, e.rows...)
		}
		e.eraseLine()
		for y := e.y + 1; y < e.height; y++ {
			e.rows[y] = row{}
		}
	default:
		e.unknown = append(e.unknown, fmt.Sprintf("%q", p[:end+1]))
	}
	return end + 1
}

func (e *emulator) eraseLine() {
	e.rows[e.y] = row{cells: e.rows[e.y].cells[:min(e.x, len(e.rows[e.y].cells))]}
}

// resize folds every line anew. The cursor stays at its line.
func (e *emulator) resize(width, height int) {
	all := append(slices.Clone(e.history), e.rows...)
	at := len(e.history) + e.y
	last := at
	for i, r := range all {
		if len(r.cells) > 0 {
			last = max(last, i)
		}
	}
	var out []row
	cursor := 0
	for i := 0; i <= last; i++ {
		first := i
		cells := all[i].cells
		for all[i].goes && i < last {
			i++
			cells = append(slices.Clone(cells), all[i].cells...)
		}
		if first <= at && at <= i {
			cursor = len(out) + (len(cells)-1)/width
			if e.x == 0 && first == i && len(cells) == 0 {
				cursor = len(out)
			}
		}
		for len(cells) > width {
			end := width
			if cells[end] == "" { // not through a wide letter
				end--
			}
			out, cells = append(out, row{cells[:end:end], true}), cells[end:]
		}
		out = append(out, row{cells: cells})
	}
	e.width, e.height = width, height
	top := max(0, len(out)-height)
	e.history, e.rows, e.y, e.full = out[:top:top], out[top:], max(0, cursor-top), false
	for len(e.rows) < height {
		e.rows = append(e.rows, row{})
	}
}

// lines are what a person sees, from the beginning of the history: long lines in one piece, no spaces at their ends.
func (e *emulator) lines() []string {
	var out []string
	text := ""
	for _, r := range append(slices.Clone(e.history), e.rows...) {
		text += strings.Join(r.cells, "")
		if !r.goes {
			out = append(out, strings.TrimRight(text, " "))
			text = ""
		}
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// wrapped are the rows of lines that were too long for the terminal, but the last of each.
func (e *emulator) wrapped() []string {
	var out []string
	for _, r := range append(slices.Clone(e.history), e.rows...) {
		if r.goes {
			out = append(out, strings.Join(r.cells, ""))
		}
	}
	return out
}

// text is all of lines.
func (e *emulator) text() string { return strings.Join(e.lines(), "\n") }
