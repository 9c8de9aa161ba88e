package document

import (
	"bytes"
	"strings"
)

// The emitter writes block style with an indentation of two. A string is plain if every version of YAML reads it as a string,
// a literal block if it has several lines, and otherwise in double quotes with the escapes of JSON.

const (
	indentWidth = 2
	// YAML limits a key on the line of its value to 1,024 characters; longer ones need a question mark.
	maxPlainKey = 128
)

func emitDocument(out []byte, t *tree) []byte { return emitMapping(out, t, 0) }

func emitIndent(out []byte, indent int) []byte {
	return append(out, bytes.Repeat([]byte{' '}, indent)...)
}

// emitMapping writes a mapping; the output is already indented for the first key.
func emitMapping(out []byte, t *tree, indent int) []byte {
	for i := range t.members {
		m := &t.members[i]
		if i > 0 {
			out = emitIndent(out, indent)
		}
		key := len(out)
		out = emitText(out, m.name)
		if len(out)-key > maxPlainKey {
			text := string(out[key:])
			out = append(append(out[:key], "? "...), text...)
			out = emitIndent(append(out, '\n'), indent)
		}
		out = append(out, ':')
		if isBlock(&m.value) {
			out = append(out, '\n')
			out = emitIndent(out, indent+indentWidth)
		} else {
			out = append(out, ' ')
		}
		out = emitValue(out, &m.value, indent+indentWidth)
	}
	return out
}

// isBlock reports whether a value is written below its key.
func isBlock(t *tree) bool { return len(t.members) > 0 || len(t.items) > 0 }

// emitValue writes a value and a line break; indent is that of its further lines.
func emitValue(out []byte, t *tree, indent int) []byte {
	switch t.kind {
	case kindMapping:
		if len(t.members) > 0 {
			return emitMapping(out, t, indent)
		}
		out = append(out, "{}"...)
	case kindList:
		if len(t.items) > 0 {
			return emitList(out, t, indent)
		}
		out = append(out, "[]"...)
	case kindString:
		if isLiteral(t.text) {
			return emitLiteral(out, t.text, indent)
		}
		out = emitText(out, t.text)
	case kindNull:
		out = append(out, "null"...)
	default:
		out = append(out, t.text...)
	}
	return append(out, '\n')
}

func emitList(out []byte, t *tree, indent int) []byte {
	for i := range t.items {
		if i > 0 {
			out = emitIndent(out, indent)
		}
		out = append(out, "- "...)
		out = emitValue(out, &t.items[i], indent+indentWidth)
	}
	return out
}

// emitText writes a string on one line.
func emitText(out []byte, text string) []byte {
	if isPlain(text) {
		return append(out, text...)
	}
	return appendString(out, text)
}

// isPlain is stricter than YAML: it excludes everything that any version of YAML may read as another type.
func isPlain(text string) bool {
	switch strings.ToLower(text) {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		return false
	}
	for i := range len(text) {
		c := text[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '/'
		inner := i > 0 && (c >= '0' && c <= '9' || strings.IndexByte(".@+=-", c) >= 0)
		// Neither a colon nor a blank may follow a colon or a blank, because ": " starts a value.
		between := i > 0 && i+1 < len(text) && (c == ':' || c == ' ') && text[i+1] != ' ' && text[i+1] != ':'
		if !letter && !inner && !between {
			return false
		}
	}
	return text != ""
}

// isLiteral reports whether a literal block can represent the text: lines of visible characters, of which the first
// determines the indentation and none consists of blanks, which editors remove.
func isLiteral(text string) bool {
	if !strings.Contains(text, "\n") || strings.ContainsAny(text[:1], " \t\n") {
		return false
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" && strings.Trim(line, " \t") == "" {
			return false
		}
	}
	for _, r := range text {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7F && mustEscape(r) {
			return false
		}
	}
	return true
}

func emitLiteral(out []byte, text string, indent int) []byte {
	out = append(out, '|')
	switch {
	case !strings.HasSuffix(text, "\n"):
		out = append(out, '-')
	case strings.HasSuffix(text, "\n\n"):
		out = append(out, '+')
	}
	out = append(out, '\n')
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if line != "" {
			out = emitIndent(out, indent)
			out = append(out, line...)
		}
		out = append(out, '\n')
	}
	return out
}
