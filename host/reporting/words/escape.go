// Package words has what is said of a run in one line, on the machine and in the management cluster: its headline and its summary.
package words

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/machineadm/machineadm/internal/visible"
)

// Escape makes text safe for one line of output: it writes line breaks, control and invisible characters, and those that
// change the direction of text as Go escapes, so that a plugin can neither forge a line nor hide a word. Backslashes stay,
// which makes Escape idempotent and not reversible.
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

// EscapeLines is Escape for several lines, such as a diff: line feeds and tabs stay.
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
