package reporting

import (
	"strings"
	"unicode/utf8"
)

// hanging is the indentation of a wrapped error's further lines.
const hanging = 4

// Wrap breaks the lines of a text at blanks, so that each fits into width columns if its words do; 0 means no limit. What
// follows a break is indented like its line, and by hang columns more.
func Wrap(text string, width, hang int) string {
	if width <= 0 {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		words := strings.TrimLeft(line, " ")
		indent := len(line) - len(words)
		column := 0
		for i, word := range strings.Split(words, " ") {
			size := utf8.RuneCountInString(strings.TrimSuffix(word, "\n"))
			switch {
			case i == 0:
				column = indent
				b.WriteString(line[:indent])
			case column+1+size > width:
				column = indent + hang
				b.WriteString("\n" + strings.Repeat(" ", column))
			default:
				column++
				b.WriteByte(' ')
			}
			b.WriteString(word)
			column += size
		}
	}
	return b.String()
}
