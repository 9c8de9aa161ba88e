package document

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// badCharacter returns the offset and the error of the first refused character, or -1.
func badCharacter(text []byte) (offset int, message, hint string) {
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c < 0x7F || c == '\n' || c == '\t' {
			i++
			continue
		}
		if c == '\r' {
			if i+1 < len(text) && text[i+1] != '\n' {
				return i, "contains a carriage return without a line feed", "end lines with LF or CRLF"
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if message, hint = checkRune(r, size); message != "" {
			return i, message, hint
		}
		i += size
	}
	return -1, "", ""
}

func checkRune(r rune, size int) (message, hint string) {
	const escape = "in double quotes, write an escape such as "
	switch {
	case r == utf8.RuneError && size == 1:
		return "is not valid UTF-8", "save the file as UTF-8"
	case r == 0:
		return "contains a NUL character", "save the file as UTF-8 text; " + escape + `\0`
	case r < ' ' || r >= 0x7F && r <= 0x9F && r != 0x85:
		return "contains a control character", "remove it; " + escape + `\x1b`
	case r == 0x85 || r == 0x2028 || r == 0x2029:
		return "contains a line break of YAML 1.1 (NEL, LS or PS)", "remove it; " + escape + `\N, \L or \P`
	case r == 0xFEFF:
		return "contains a byte order mark", "remove it; put --- on a line between joined files"
	case r == 0xFFFE || r == 0xFFFF:
		return "contains a Unicode noncharacter", "remove it"
	}
	return "", ""
}

// position returns the position in the stream of an offset in the chunk.
func (c chunk) position(offset int) Position {
	before := c.text[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	return Position{
		Line:   c.line + bytes.Count(before, []byte{'\n'}),
		Column: utf8.RuneCount(before[start:]) + 1,
	}
}

// otherEncoding reports whether a stream starts like UTF-16 or UTF-32: with a byte order mark, or with a NUL next to a character.
func otherEncoding(data []byte) bool {
	if len(data) < 2 {
		return false
	}
	a, b := data[0], data[1]
	return a == 0xFF && b == 0xFE || a == 0xFE && b == 0xFF || a == 0 && b == 0 && len(data) >= 4 && data[2] == 0xFE && data[3] == 0xFF ||
		a == 0 && b != 0 || a != 0 && a < 0x80 && b == 0
}

// structure counts the structural characters, an upper bound of the parser's tokens and nodes.
func structure(text []byte) int {
	n := 0
	before := byte('\n')
	for i, c := range text {
		switch c {
		case ',', '[', '{', '?':
			n++
		case ':', '-':
			// Only before a blank or a line break; for {"a":1} the comma or brace is counted.
			if i+1 == len(text) || text[i+1] <= ' ' {
				n++
			}
		case '!', '&', '*', '\'', '"', '#':
			// Not after a letter, where it is text or closes a quoted scalar. A comment ends a plain scalar.
			if before <= ' ' || strings.IndexByte(",[]{}:?-!&*'\"", before) >= 0 {
				n++
			}
		}
		before = c
	}
	return n
}
