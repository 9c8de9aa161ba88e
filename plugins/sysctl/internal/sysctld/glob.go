package sysctld

import "strings"

// isGlob says whether both programs would take the key for a pattern; a lone { or \ does not make one.
func isGlob(key string) bool { return strings.ContainsAny(key, "*?[") }

// matchPath matches as glob(7) does: a wildcard never matches a slash. Braces, which glob(3) can expand as an
// extension, are taken literally.
func matchPath(pattern, path string) bool {
	patterns, segments := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(patterns) != len(segments) {
		return false
	}
	for i := range patterns {
		if !matchText(patterns[i], segments[i]) {
			return false
		}
	}
	return true
}

// matchText matches as fnmatch(3) does without flags: a wildcard matches every character. Its time is bounded by
// the product of the lengths, also for patterns made to be slow.
func matchText(pattern, text string) bool {
	p, t := 0, 0
	star, resume := -1, 0
	for t < len(text) {
		if p < len(pattern) && pattern[p] == '*' {
			star, resume = p, t
			p++
			continue
		}
		if width, ok := matchOne(pattern[p:], text[t]); ok {
			p += width
			t++
			continue
		}
		if star < 0 {
			return false
		}
		resume++
		p, t = star+1, resume
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// matchOne matches one byte with the first element of the pattern and returns how long that element is.
func matchOne(pattern string, c byte) (int, bool) {
	if pattern == "" {
		return 0, false
	}
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		if width, ok, closed := matchSet(pattern, c); closed {
			return width, ok
		}
	case '\\':
		if len(pattern) > 1 {
			return 2, pattern[1] == c
		}
	}
	return 1, pattern[0] == c
}

// matchSet matches a bracket expression such as [a-z], [!0-9] or [[:digit:]_]. One that is not closed is no set: its
// bracket stands for itself.
func matchSet(pattern string, c byte) (width int, matched, closed bool) {
	i, negated := 1, false
	if i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^') {
		negated = true
		i++
	}
	for first := true; i < len(pattern); first = false {
		if pattern[i] == ']' && !first {
			return i + 1, matched != negated, true
		}
		if name, after, ok := strings.Cut(pattern[i:], ":]"); ok && strings.HasPrefix(name, "[:") {
			matched = matched || inClass(name[2:], c)
			i = len(pattern) - len(after)
			continue
		}
		low := pattern[i]
		i++
		high := low
		if i+1 < len(pattern) && pattern[i] == '-' && pattern[i+1] != ']' {
			high = pattern[i+1]
			i += 2
		}
		matched = matched || low <= c && c <= high
	}
	return 0, false, false
}

func inClass(name string, c byte) bool {
	lower, upper, digit := 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9'
	switch name {
	case "lower":
		return lower
	case "upper":
		return upper
	case "alpha":
		return lower || upper
	case "digit":
		return digit
	case "alnum":
		return lower || upper || digit
	case "punct":
		return c > ' ' && c < 0x7f && !lower && !upper && !digit
	}
	return false
}
