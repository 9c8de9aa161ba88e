// Package visible escapes characters that a terminal or an editor does not show: control and invisible characters, and
// those that change the direction of text.
package visible

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Unsafe reports whether a character needs escaping. IsPrint excludes control, format (bidi, zero width) and private use
// characters and every space except U+0020; the other property lists letters without a glyph, such as the Hangul fillers.
func Unsafe(r rune) bool {
	return !unicode.IsPrint(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// JSON escapes every unsafe character of a JSON text as \uXXXX, which decodes to the same value. Line feeds stay, because
// an encoder writes them between values only.
func JSON(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		if r == '\n' || !Unsafe(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}
	return out
}

// Writer escapes JSON text with JSON and writes it to Out. Each Write must hold whole characters.
type Writer struct{ Out io.Writer }

// Write implements io.Writer.
func (w Writer) Write(p []byte) (int, error) {
	if _, err := w.Out.Write(JSON(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
