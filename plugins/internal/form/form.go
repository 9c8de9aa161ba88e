// Package form has the forms of values that the plugins of several kinds check.
package form

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/machineadm/machineadm/internal/lazyregexp"
)

var windowsPath = lazyregexp.New(`^[A-Za-z]:(?:\\[^\\/:*?"<>|]+)+$`)

// HasControl reports whether a text has control characters, line ends among them.
func HasControl(text string) bool { return strings.ContainsFunc(text, unicode.IsControl) }

// IsPath reports whether a text is an absolute path in its shortest form, other than the root, without control characters.
func IsPath(text string, windows bool) bool {
	if windows {
		segments := strings.Split(text, `\`)
		return windowsPath().MatchString(text) && !HasControl(text) && !slices.Contains(segments, ".") && !slices.Contains(segments, "..")
	}
	return path.IsAbs(text) && path.Clean(text) == text && text != "/" && !HasControl(text)
}
