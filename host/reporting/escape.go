// Package reporting shows a run to people and to programs: lines of text, JSON events, the status of the last run.
package reporting

import (
	"strconv"
	"strings"
	"unicode"
)

// Escape makes a text safe to show on one line: control characters, line breaks, and the characters that change the
// direction of a text are written as escapes, so that what a plugin says cannot forge another line or hide a word.
func Escape(text string) string {
	if !strings.ContainsFunc(text, unsafe) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unsafe(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		b.WriteRune(r)
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

func unsafe(r rune) bool {
	return r == unicode.ReplacementChar || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) ||
		r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Cf, r)
}
