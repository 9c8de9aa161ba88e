// Package sysctld evaluates sysctl.d(5) configuration as the programs that apply it at boot do: systemd-sysctl(8) and
// procps' sysctl(8) --system. It reads files only through Source.
package sysctld

import (
	"errors"
	"strings"
	"unicode"
)

// Key is a kernel parameter as a slash path below /proc/sys, for example net/ipv4/conf/eth0.100/rp_filter.
// All spellings of one parameter are the same Key.
type Key string

// ParseKey parses a key of a document. Dots or slashes separate its segments: after a first dot, dots and slashes are
// interchanged (sysctl.d(5)). It refuses keys that a file cannot contain, that are patterns, or that leave /proc/sys.
// Errors do not repeat the key.
func ParseKey(text string) (Key, error) {
	for _, rule := range []struct {
		broken  bool
		message string
	}{
		{strings.ContainsFunc(text, unicode.IsControl), "a key has no control characters"},
		{strings.ContainsFunc(text, unicode.IsSpace), "a key has no white space"},
		{strings.ContainsRune(text, '='), "a key has no = sign"},
		{isGlob(text), "a key names one parameter, without the wildcards * ? ["},
		{strings.ContainsAny(text[:min(1, len(text))], "-#;"), "a key does not begin with - # or ;"},
	} {
		if rule.broken {
			return "", errors.New(rule.message)
		}
	}
	path := interchange(text)
	segments := strings.Split(path, "/")
	for _, segment := range segments {
		switch segment {
		case "":
			return "", errors.New("a key has no empty segment: no separator at an end and none repeated")
		case ".", "..":
			return "", errors.New("the segments . and .. are not allowed in a key")
		}
	}
	if len(segments) == 1 {
		return "", errors.New("a key has at least two segments, such as kernel.panic")
	}
	return Key(path), nil
}

// String returns the key as sysctl(8) prints it, with dots. ParseKey parses it to the same key, because the first
// segment contains no dot.
func (k Key) String() string { return swap(string(k)) }

// simplify removes leading, repeated and trailing slashes and the segment ".": the path names the same file.
func simplify(path string) string {
	var kept []string
	for segment := range strings.SplitSeq(path, "/") {
		if segment != "" && segment != "." {
			kept = append(kept, segment)
		}
	}
	return strings.Join(kept, "/")
}

// interchange converts a key with either separator to a slash path.
func interchange(text string) string {
	if at := strings.IndexAny(text, "/."); at >= 0 && text[at] == '.' {
		return swap(text)
	}
	return text
}

// swap replaces each dot by a slash and each slash by a dot. It works on bytes, because keys in files need not be UTF-8.
func swap(text string) string {
	swapped := []byte(text)
	for i, c := range swapped {
		switch c {
		case '.':
			swapped[i] = '/'
		case '/':
			swapped[i] = '.'
		}
	}
	return string(swapped)
}
