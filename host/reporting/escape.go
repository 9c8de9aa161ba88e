// Package reporting shows a run to people and to programs: lines of text, JSON events, the status of the last run.
package reporting

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/machineadm/machineadm/internal/visible"
)

// Escape makes a text safe to show on one line: line breaks, control characters, what is invisible and what changes the
// direction of a text are written as Go writes them in a string, so that what a plugin says cannot forge another line or
// hide a word. Backslashes stay, so a text that was escaped before stays as it is; what a text meant is not to be read
// back from it.
func Escape(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, visible.Unsafe) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case visible.Unsafe(r):
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
