// Package sysctld reads sysctl.d(5) configuration as the programs that apply it at boot do: systemd-sysctl(8) and
// procps' sysctl(8) --system. It is pure: what it reads comes through Source.
package sysctld

import (
	"errors"
	"strings"
	"unicode"
)

// Key is a kernel parameter as a slash path below /proc/sys, for example net/ipv4/conf/eth0.100/rp_filter.
// Two spellings of one parameter are the same Key.
type Key string

// ParseKey reads a key that a person wrote, strictly. Dots or slashes separate, and the first separator decides which:
// after a dot, dots and slashes are interchanged (sysctl.d(5)). What a file could not carry, what is no single
// parameter and what could leave /proc/sys is refused. Errors do not repeat the key.
func ParseKey(text string) (Key, error) {
	if strings.ContainsFunc(text, unicode.IsControl) {
		return "", errors.New("a key has no control characters")
	}
	if strings.ContainsFunc(text, unicode.IsSpace) {
		return "", errors.New("a key has no white space")
	}
	if strings.ContainsRune(text, '=') {
		return "", errors.New("a key has no = sign")
	}
	if isGlob(text) {
		return "", errors.New("a key names one parameter, without the wildcards * ? [")
	}
	if strings.ContainsAny(text[:min(1, len(text))], "-#;") {
		return "", errors.New("a key does not begin with - # or ;")
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

// String is the key as sysctl(8) prints it, with dots. ParseKey reads it back as the same key: what precedes the first
// separator has no dot, because that dot would have been the first separator.
func (k Key) String() string { return swap(string(k)) }

// simplify drops what does not change which file a path names: a leading, doubled or trailing slash, a segment ".".
func simplify(path string) string {
	var kept []string
	for segment := range strings.SplitSeq(path, "/") {
		if segment != "" && segment != "." {
			kept = append(kept, segment)
		}
	}
	return strings.Join(kept, "/")
}

// interchange turns a key, as it is written, into a slash path.
func interchange(text string) string {
	if at := strings.IndexAny(text, "/."); at >= 0 && text[at] == '.' {
		return swap(text)
	}
	return text
}

// swap works on bytes: a key of a file may be no UTF-8, and interface names are not bound to it.
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
