package document

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// number converts a YAML integer or float to JSON. A float keeps a point or an exponent, so that it stays a float.
func number(text string) (json, message, hint string) {
	digits := strings.TrimLeft(text, "+-")
	switch {
	case strings.Contains(text, "_"), len(digits) > 1 && digits[0] == '0' && strings.Contains("0123456789bB", digits[1:2]):
		return "", "a number that versions of YAML read differently: leading zero, underscore or binary",
			"put it in quotes if it is text, such as a file mode; otherwise write a plain decimal number"
	case strings.HasSuffix(strings.ToLower(digits), "inf"), strings.HasSuffix(strings.ToLower(digits), "nan"):
		return "", "infinity and NaN are refused", "write a number; text needs quotes"
	}
	if i, err := strconv.ParseInt(text, 0, 64); err == nil {
		return strconv.FormatInt(i, 10), "", ""
	}
	if u, err := strconv.ParseUint(strings.TrimPrefix(text, "+"), 0, 64); err == nil {
		return strconv.FormatUint(u, 10), "", ""
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || isDigits(digits) {
		return "", "a number beyond 64 bits", "put it in quotes if it is text"
	}
	return formatFloat(f), "", ""
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// formatFloat returns a form that is a float in JSON and YAML.
func formatFloat(f float64) string {
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	text := strconv.FormatFloat(f, format, -1, 64)
	if isDigits(strings.TrimPrefix(text, "-")) {
		text += ".0"
	}
	return text
}

// appendString appends s as a JSON string that is also a double-quoted YAML string: it escapes invisible characters and those
// that a document must not contain.
func appendString(out []byte, s string) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < 0x7F && c != '"' && c != '\\' {
			i++
			continue
		}
		r, size := rune(c), 1
		if c >= utf8.RuneSelf {
			if r, size = utf8.DecodeRuneInString(s[i:]); !mustEscape(r) && (r != utf8.RuneError || size > 1) {
				i += size
				continue
			}
		}
		out = append(out, s[start:i]...)
		switch r {
		case '"', '\\':
			out = append(out, '\\', c)
		case '\n':
			out = append(out, '\\', 'n')
		case '\t':
			out = append(out, '\\', 't')
		case '\r':
			out = append(out, '\\', 'r')
		default:
			out = append(out, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		}
		i += size
		start = i
	}
	out = append(out, s[start:]...)
	return append(out, '"')
}

// mustEscape reports whether a non-ASCII character must be escaped in a document. All of them have 16 bits.
func mustEscape(r rune) bool {
	switch {
	case r <= 0x9F, r == 0x2028, r == 0x2029, r == 0xFEFF, r == 0xFFFE, r == 0xFFFF:
		return true
	case r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2060 && r <= 0x2069: // invisible, or changes the direction of text
		return true
	}
	return false
}
