package sysctld

import (
	"regexp"
	"strings"
)

// isGlob reports whether both programs treat the key as a pattern; a lone { or \ does not make one.
func isGlob(key string) bool { return strings.ContainsAny(key, "*?[") }

// matchPath matches as glob(7) does, where wildcards do not match slashes. With as many slashes in the path as in its
// pattern, none is left for a wildcard.
func matchPath(pattern string, glob *regexp.Regexp, path string) bool {
	return strings.Count(pattern, "/") == strings.Count(path, "/") && glob.MatchString(path)
}

// compileGlob translates a pattern of fnmatch(3) without flags, where wildcards also match slashes. Braces, and a bracket
// that is not closed, are taken literally. A pattern with an invalid set, such as [z-a], matches nothing.
func compileGlob(pattern string) *regexp.Regexp {
	element := regexp.MustCompile(`(?s)\[[!^]?(?:\[:\w+:\]|.)(?:\[:\w+:\]|[^\]])*\]|\\.|.`)
	source := element.ReplaceAllStringFunc(pattern, func(e string) string {
		switch {
		case e == "*":
			return ".*"
		case e == "?":
			return "."
		case len(e) > 1 && e[0] == '[':
			set := strings.ReplaceAll(e[1:], `\`, `\\`)
			if negated, ok := strings.CutPrefix(set, "!"); ok {
				set = "^" + negated
			}
			return "[" + set
		case len(e) > 1 && e[0] == '\\':
			return regexp.QuoteMeta(e[1:])
		}
		return regexp.QuoteMeta(e)
	})
	glob, err := regexp.Compile(`(?s)^(?:` + source + `)$`)
	if err != nil {
		return regexp.MustCompile(`[^\x00-\x{10FFFF}]`)
	}
	return glob
}
