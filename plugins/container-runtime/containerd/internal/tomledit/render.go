package tomledit

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// normal converts a value to the types that decoding gives, and refuses what TOML cannot express.
func normal(value any, depth int) (any, error) {
	if depth > MaxDepth {
		return nil, fmt.Errorf("a value more than %d levels deep", MaxDepth)
	}
	switch v := value.(type) {
	case bool, int64, float64:
		return v, nil
	case string:
		if !utf8.ValidString(v) {
			return nil, fmt.Errorf("a string that is not UTF-8")
		}
		return v, nil
	case []string:
		list := make([]any, 0, len(v))
		for _, each := range v {
			list = append(list, each)
		}
		return normal(list, depth)
	case []any:
		list := make([]any, 0, len(v))
		for _, each := range v {
			part, err := normal(each, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, part)
		}
		return list, nil
	case map[string]any:
		table := make(map[string]any, len(v))
		for key, each := range v {
			if !utf8.ValidString(key) {
				return nil, fmt.Errorf("a key that is not UTF-8")
			}
			part, err := normal(each, depth+1)
			if err != nil {
				return nil, err
			}
			table[key] = part
		}
		return table, nil
	default:
		return nil, fmt.Errorf("a %T cannot be set", value)
	}
}

// equal compares a decoded value with a normal one.
func equal(have, want any) bool {
	switch w := want.(type) {
	case []any:
		h, ok := have.([]any)
		return ok && slices.EqualFunc(h, w, equal)
	case map[string]any:
		h, ok := have.(map[string]any)
		return ok && maps.EqualFunc(h, w, equal)
	case float64:
		h, ok := have.(float64)
		return ok && (h == w && math.Signbit(h) == math.Signbit(w) || math.IsNaN(h) && math.IsNaN(w))
	case bool, int64, string:
		return have == want
	}
	return false
}

// render writes a normal value on one line.
func render(value any, quote byte) string {
	switch v := value.(type) {
	case string:
		return renderString(v, quote)
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return renderFloat(v)
	case []any:
		parts := make([]string, 0, len(v))
		for _, each := range v {
			parts = append(parts, render(each, quote))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, renderKey(key, quote)+" = "+render(v[key], quote))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	default:
		// normal lets nothing else through, and the parser refuses this one.
		return fmt.Sprintf("<%T>", value)
	}
}

func renderFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}

// renderString uses the quote that is asked for, a single one only where it can express the text. Without a
// preference, a single one avoids backslashes.
func renderString(s string, quote byte) string {
	literal := quote == '\'' || quote == 0 && strings.ContainsAny(s, `"\`)
	if literal && !strings.ContainsFunc(s, func(r rune) bool { return r == '\'' || isControl(r) }) {
		return "'" + s + "'"
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case isControl(r):
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// Quoted writes a text as a basic string.
func Quoted(text string) string { return renderString(text, '"') }

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

func renderKey(key string, quote byte) string {
	bare := key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '-' && r != '_'
	})
	if bare {
		return key
	}
	return renderString(key, quote)
}

func renderKeys(keys []string, quote byte) []string {
	parts := make([]string, 0, len(keys))
	for _, key := range keys {
		parts = append(parts, renderKey(key, quote))
	}
	return parts
}

// dottedKey writes a path, for errors and marks.
func dottedKey(path []string) string { return strings.Join(renderKeys(path, '"'), ".") }
