// Package visible escapes what a terminal or an editor does not show as it is: control characters, invisible characters
// and those that change the direction of a text.
package visible

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Unsafe says whether a character needs escaping. IsPrint leaves out controls, formats (bidi, zero width), private use,
// and every space but the plain one; the other property holds letters without a shape, such as the Hangul fillers.
func Unsafe(r rune) bool {
	return !unicode.IsPrint(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// JSON writes every unsafe character as \uXXXX, which a JSON decoder reads as the same text. Line feeds stay: an encoder
// puts them between values only.
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

// Writer passes on what is written to it through JSON. Each Write must hold whole characters.
type Writer struct{ Out io.Writer }

// Write implements io.Writer.
func (w Writer) Write(p []byte) (int, error) {
	if _, err := w.Out.Write(JSON(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
