package target

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// assignments reads the values of keys from a file in the format of os-release(5): a KEY=value per line, comments that start
// with #, values without quotes, in single quotes, or in double quotes with the escapes \" \$ \` \\. The last assignment of
// a key counts. Other lines and keys are skipped. Broken quotes in a requested value are an error, because a guess could
// detect a wrong distribution.
func assignments(data string, keys ...string) (map[string]string, error) {
	values := make(map[string]string, len(keys))
	number := 0
	for line := range strings.Lines(strings.TrimPrefix(data, "\ufeff")) {
		number++
		key, raw, found := strings.Cut(strings.Trim(line, " \t\r\n"), "=")
		if !found || !slices.Contains(keys, key) {
			continue
		}
		value, err := unquote(raw)
		if err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", number, key, err)
		}
		values[key] = strings.ToValidUTF8(value, "\ufffd")
	}
	return values, nil
}

func unquote(raw string) (string, error) {
	var value, rest string
	var closed bool
	switch {
	case strings.HasPrefix(raw, `'`):
		value, rest, closed = strings.Cut(raw[1:], `'`)
	case strings.HasPrefix(raw, `"`):
		value, rest, closed = unescape(raw[1:])
	default:
		return bare(raw), nil
	}
	if !closed {
		return "", errors.New("the quote is not closed on the same line")
	}
	if comment := strings.TrimLeft(rest, " \t"); comment != "" && (comment[0] != '#' || len(comment) == len(rest)) {
		return "", errors.New("text follows the closing quote; quote the whole value")
	}
	return value, nil
}

// unescape reads up to the closing double quote. A backslash before a byte that is not special in double quotes stays.
func unescape(s string) (value, rest string, closed bool) {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '"' {
			return out.String(), s[i+1:], true
		}
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("\"$`\\", s[i+1]) >= 0 {
			i++
		}
		out.WriteByte(s[i])
	}
	return "", "", false
}

// bare reads a value without quotes, in which a backslash escapes the next byte. Blanks are kept, as systemd does, because
// some files rely on it.
func bare(raw string) string {
	var out strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] == '\\' && i+1 < len(raw) {
			i++
		}
		out.WriteByte(raw[i])
	}
	return out.String()
}
