// Package form has the forms of values that the plugins of several kinds check.
package form

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var (
	hostName    = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)
	windowsPath = regexp.MustCompile(`^[A-Za-z]:(?:\\[^\\/:*?"<>|]+)+$`)
)

// HasControl reports whether a text has control characters, line ends among them.
func HasControl(text string) bool { return strings.ContainsFunc(text, unicode.IsControl) }

// IsHostName reports whether a text is a DNS name of at most 253 characters, with letters of any case. An IPv4 address has this form as well.
func IsHostName(text string) bool { return len(text) <= 253 && hostName.MatchString(text) }

// IsPath reports whether a text is an absolute path in its shortest form, other than the root, without control characters.
func IsPath(text string, windows bool) bool {
	if windows {
		segments := strings.Split(text, `\`)
		return windowsPath.MatchString(text) && !HasControl(text) && !slices.Contains(segments, ".") && !slices.Contains(segments, "..")
	}
	return path.IsAbs(text) && path.Clean(text) == text && text != "/" && !HasControl(text)
}
