package document

import (
	"bytes"
	"regexp"
)

// withoutDirectives checks the directives of a chunk and turns them into comments, because the parser refuses %YAML 1.2.
func (c chunk) withoutDirectives() (chunk, *fault) {
	version := regexp.MustCompile(`^%YAML[ \t]+1\.[12][ \t]*(#.*)?\r?\n?$`)
	text := bytes.Clone(c.text)
	seen := false
	for at := 0; at < len(text); {
		end := len(text)
		if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n + 1
		}
		line := text[at:end]
		switch {
		case isMarker(line, '-'):
			c.text, c.directives = text, false
			return c, nil
		case line[0] == '%' && (seen || !version.Match(line)):
			return c, &fault{
				at: c.position(at), message: "contains an unknown directive",
				hint: "remove the line: only one %YAML 1.2 is allowed; a value that starts with % needs quotes",
			}
		case line[0] == '%':
			seen = true
			text[at] = '#'
		case !isBlank(line):
			return c, &fault{
				at: c.position(at), message: "follows a directive without ---", hint: "put --- on a line before it",
			}
		}
		at = end
	}
	return c, &fault{
		at: Position{Line: c.line, Column: 1}, message: "contains a directive without a document",
		hint: "remove the line that starts with %",
	}
}
