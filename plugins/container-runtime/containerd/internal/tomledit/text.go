package tomledit

import (
	"bytes"

	"github.com/pelletier/go-toml/v2/unstable"
)

// overBlanks returns the offset of the next byte that is neither a blank nor a tab.
func (d *Document) overBlanks(at int) int {
	for at < len(d.data) && (d.data[at] == ' ' || d.data[at] == '\t') {
		at++
	}
	return at
}

// backOverBlanks returns the offset of the blanks and tabs that end at an offset.
func (d *Document) backOverBlanks(at int) int {
	for at > 0 && (d.data[at-1] == ' ' || d.data[at-1] == '\t') {
		at--
	}
	return at
}

// overFiller is overBlanks for what may stand between the values of an array or inline table: blanks, line ends,
// comments and commas. It also returns the offset of the comma that it came over, or -1.
func (d *Document) overFiller(at int) (end, comma int) {
	comma = -1
	for ; at < len(d.data); at++ {
		switch d.data[at] {
		case ' ', '\t', '\r', '\n':
		case ',':
			comma = at
		case '#':
			at = d.contentEnd(at) - 1
		default:
			return at, comma
		}
	}
	return at, comma
}

func (d *Document) lineStart(at int) int { return bytes.LastIndexByte(d.data[:at], '\n') + 1 }

// contentEnd returns where the text of a line ends, before its line end.
func (d *Document) contentEnd(at int) int {
	end := d.lineEnd(at)
	if end > at && d.data[end-1] == '\n' {
		end--
		if end > at && d.data[end-1] == '\r' {
			end--
		}
	}
	return end
}

// lineEnd returns where the next line begins.
func (d *Document) lineEnd(at int) int {
	if i := bytes.IndexByte(d.data[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(d.data)
}

// newline is what the document ends its lines with.
func (d *Document) newline() string {
	if i := bytes.IndexByte(d.data, '\n'); i > 0 && d.data[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

func (d *Document) isBlank(s span) bool { return len(bytes.Trim(d.data[s.from:s.to], " \t\r\n")) == 0 }

// indent returns the blanks before an offset, when nothing else is before it on its line.
func (d *Document) indent(at int) string {
	start := d.lineStart(at)
	if d.backOverBlanks(at) > start {
		return ""
	}
	return string(d.data[start:at])
}

// lines returns the whole lines of a statement, with their line ends.
func (d *Document) lines(s *statement) span {
	return span{d.lineStart(s.body.from), d.lineEnd(max(s.body.to, s.comment.to))}
}

// place returns where a node is written first.
func (d *Document) place(n *node) int {
	switch {
	case n.pair != span{}:
		return n.pair.from
	case n.home == noStatement:
		return 0
	default:
		return d.statements[n.home].body.from
	}
}

// commentedOut is the kind of a comment if uncommented: a header, a key/value or, Invalid, neither.
func commentedOut(line []byte) unstable.Kind {
	var parser unstable.Parser
	parser.Reset(bytes.TrimLeft(line, "# \t"))
	if !parser.NextExpression() {
		return unstable.Invalid
	}
	return parser.Expression().Kind
}

// elements returns the spans of the values of an array.
func (d *Document) elements(array span) []span {
	var parser unstable.Parser
	text := append([]byte("V="), d.data[array.from:array.to]...)
	parser.Reset(text)
	if !parser.NextExpression() {
		return nil
	}
	var all []span
	at := array.from + 1
	for it := parser.Expression().Value().Children(); it.Next(); {
		from, _ := d.overFiller(at)
		at = d.valueEnd(it.Node(), from)
		all = append(all, span{from, at})
	}
	return all
}

// valueEnd returns where a value ends that begins at an offset. The parser gives no span for arrays and inline tables.
func (d *Document) valueEnd(v *unstable.Node, from int) int {
	if v.Kind != unstable.Array && v.Kind != unstable.InlineTable {
		return from + int(v.Raw.Length)
	}
	at := from + 1
	for it := v.Children(); it.Next(); {
		begin, _ := d.overFiller(at)
		if at = begin + int(it.Node().Raw.Length); v.Kind == unstable.Array {
			at = d.valueEnd(it.Node(), begin)
		}
	}
	end, _ := d.overFiller(at)
	return end + 1
}

// quoteOf is the quote that the value at a place begins with, or else the one that the document uses first.
func (d *Document) quoteOf(value span) byte {
	if c := d.data[value.from]; c == '"' || c == '\'' {
		return c
	}
	return d.textQuote
}
