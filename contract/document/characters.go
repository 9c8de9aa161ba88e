package document

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// badCharacter finds the first character that a document may not hold as it is, and says what is wrong with it.
// offset is -1 when there is none.
func badCharacter(text []byte) (offset int, message, hint string) {
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c < 0x7F || c == '\n' || c == '\t' {
			i++
			continue
		}
		if c == '\r' {
			if i+1 < len(text) && text[i+1] != '\n' {
				return i, "holds a carriage return without a line feed", "end lines with LF or CRLF"
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if message, hint = judgeRune(r, size); message != "" {
			return i, message, hint
		}
		i += size
	}
	return -1, "", ""
}

func judgeRune(r rune, size int) (message, hint string) {
	const escape = "inside double quotes it can be written as an escape such as "
	switch {
	case r == utf8.RuneError && size == 1:
		return "is not valid UTF-8", "save the file as UTF-8"
	case r == 0:
		return "holds a NUL character", "save the file as UTF-8 text; " + escape + `\0`
	case r < ' ' || r >= 0x7F && r <= 0x9F && r != 0x85:
		return "holds a control character", "remove it; " + escape + `\x1b`
	case r == 0x85 || r == 0x2028 || r == 0x2029:
		return "holds a line break that only old versions of YAML know (NEL, LS or PS)", "remove it; " + escape + `\N, \L or \P`
	case r == 0xFEFF:
		return "holds a byte order mark in its midst", "remove it; where files were joined, put --- on a line between them"
	case r == 0xFFFE || r == 0xFFFF:
		return "holds a character that Unicode never assigns", "remove it"
	}
	return "", ""
}

// position turns an offset in the chunk into a position in the stream.
func (c chunk) position(offset int) Position {
	before := c.text[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	return Position{
		Line:   c.line + bytes.Count(before, []byte{'\n'}),
		Column: utf8.RuneCount(before[start:]) + 1,
	}
}

// otherEncoding says whether a stream begins like UTF-16 or UTF-32: with their marks, or with NUL beside a character.
func otherEncoding(data []byte) bool {
	if len(data) < 2 {
		return false
	}
	a, b := data[0], data[1]
	return a == 0xFF && b == 0xFE || a == 0xFE && b == 0xFF || a == 0 && b == 0 && len(data) >= 4 && data[2] == 0xFE && data[3] == 0xFF ||
		a == 0 && b != 0 || a != 0 && a < 0x80 && b == 0
}

// structure counts the characters that YAML can make structure of: an upper bound of the tokens and nodes of a parser.
func structure(text []byte) int {
	n := 0
	before := byte('\n')
	for i, c := range text {
		switch c {
		case ',', '[', '{', '?':
			n++
		case ':', '-':
			// Only before a blank or a line break; in {"a":1} a comma or a brace is there to be counted as well.
			if i+1 == len(text) || text[i+1] <= ' ' {
				n++
			}
		case '!', '&', '*', '\'', '"', '#':
			// Not behind a letter, where it is a part of the text or closes a quoted scalar. A comment ends a plain scalar.
			if before <= ' ' || strings.IndexByte(",[]{}:?-!&*'\"", before) >= 0 {
				n++
			}
		}
		before = c
	}
	return n
}
