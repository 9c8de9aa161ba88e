// Package reporting shows a run to people and to programs: lines of text, JSON events, the status of the last run.
package reporting

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes a text safe to show on one line: line breaks, control characters, what is invisible and what changes the
// direction of a text are written as Go writes them in a string, so that what a plugin says cannot forge another line or
// hide a word. Backslashes stay, so a text that was escaped before stays as it is; what a text meant is not to be read
// back from it.
func Escape(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, unsafe) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case unsafe(r):
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
		text = text[size:]
	}
	return b.String()
}

// EscapeLines is Escape for a text of several lines, such as a diff: line feeds and tabs stay.
func EscapeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		parts := strings.Split(line, "\t")
		for k := range parts {
			parts[k] = Escape(parts[k])
		}
		lines[i] = strings.Join(parts, "\t")
	}
	return strings.Join(lines, "\n")
}

// unsafe: IsPrint leaves out controls, formats (bidi, zero width), private use, and every space but the plain one; the
// other property holds letters that have no shape, such as the Hangul fillers.
func unsafe(r rune) bool {
	return !unicode.IsPrint(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}
