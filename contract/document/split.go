package document

import (
	"bytes"
	"iter"
)

// chunk is the text of one document, with its markers, directives and comments.
type chunk struct {
	text []byte
	line int // of the first byte, from 1
	// blank means neither content nor a directive.
	blank bool
	// directives means lines that start with % before the ---.
	directives bool
}

const byteOrderMark = "\uFEFF"

// splitter splits a stream by lines. A marker at the start of any line counts, so that splitting needs no YAML grammar.
type splitter struct {
	data  []byte
	start int // of the chunk
	line  int // of the chunk

	marked     bool // the chunk has a ---
	content    bool
	directives bool
	cut        []int // offsets of byte order marks to remove
}

// split yields the chunks of a stream, empty ones included.
func split(data []byte) iter.Seq[chunk] {
	return func(yield func(chunk) bool) {
		s := splitter{data: data, line: 1}
		line := 1
		for at := 0; at < len(data); line++ {
			end := len(data)
			if n := bytes.IndexByte(data[at:], '\n'); n >= 0 {
				end = at + n + 1
			}
			text, mark := bytes.CutPrefix(data[at:end], []byte(byteOrderMark))
			switch {
			case isMarker(text, '-'):
				if s.marked || s.content {
					if !yield(s.flush(at, line)) {
						return
					}
				}
				s.begin(text[3:], mark, at)
			case isMarker(text, '.'):
				if mark {
					s.cut = append(s.cut, at)
				}
				if !yield(s.flush(end, line+1)) {
					return
				}
			default:
				s.add(data[at:end], at)
			}
			at = end
		}
		if s.start < len(data) {
			yield(s.flush(len(data), line))
		}
	}
}

// begin starts a document at a --- marker; rest is the remaining line.
func (s *splitter) begin(rest []byte, mark bool, at int) {
	s.marked = true
	if mark {
		s.cut = append(s.cut, at)
	}
	if !isBlank(rest) {
		s.content = true
	}
}

// add adds a line without a marker.
func (s *splitter) add(text []byte, at int) {
	if s.content {
		return
	}
	if bare, mark := bytes.CutPrefix(text, []byte(byteOrderMark)); mark {
		s.cut = append(s.cut, at)
		text = bare
	}
	switch {
	case isBlank(text):
	case text[0] == '%' && !s.marked:
		s.directives = true
	default:
		s.content = true
	}
}

// flush ends the chunk at offset end, where the next one starts on the given line.
func (s *splitter) flush(end, line int) chunk {
	c := chunk{text: s.data[s.start:end], line: s.line, blank: !s.content && !s.directives, directives: s.directives}
	if len(s.cut) > 0 {
		var kept []byte
		from := s.start
		for _, at := range s.cut {
			kept = append(kept, s.data[from:at]...)
			from = at + len(byteOrderMark)
		}
		c.text = append(kept, s.data[from:end]...)
	}
	*s = splitter{data: s.data, start: end, line: line}
	return c
}

// isMarker reports whether a line starts with three of the character, followed by a blank or the end.
func isMarker(line []byte, of byte) bool {
	if len(line) < 3 || line[0] != of || line[1] != of || line[2] != of {
		return false
	}
	return len(line) == 3 || line[3] == ' ' || line[3] == '\t' || line[3] == '\n' || line[3] == '\r'
}

// isBlank reports whether a line contains at most a comment.
func isBlank(line []byte) bool {
	line = bytes.TrimLeft(line, " \t")
	return len(line) == 0 || line[0] == '#' || line[0] == '\n' || line[0] == '\r'
}
