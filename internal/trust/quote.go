package trust

import (
	"runtime"
	"strings"
)

// Quote quotes a word of a command line: for a POSIX shell, or on Windows for cmd and PowerShell, where a path has no
// quotes.
func Quote(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+=:,@%", r)
	}
	switch {
	case runtime.GOOS == "windows":
		return `"` + text + `"`
	case text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0:
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
