package document

import (
	"bytes"
	"errors"

	"go.yaml.in/yaml/v4"
)

const (
	depthMessage = "nests deeper than 64 levels"
	depthHint    = "check the indentation and the brackets"
)

// syntax returns the fault for an error of the parser. Known errors are translated and others omitted, because the parser's
// messages can quote the document.
func (c chunk) syntax(err error, r *rules) *fault {
	f := &fault{at: Position{Line: c.line, Column: 1}, message: "is not valid YAML"}
	var load *yaml.LoadError
	if !errors.As(err, &load) {
		return f
	}
	mark := load.Mark
	if mark.Line == 0 || useContext(load) {
		mark = load.ContextMark
	}
	if mark.Line > 0 {
		f.at = c.inside(Position{Line: c.line + mark.Line - 1, Column: mark.Column})
	}
	if r.tooDeep {
		f.message, f.hint = depthMessage, depthHint
		return f
	}
	text, hint := explain(load)
	if c.byteAt(f.at) == '\t' {
		text, hint = "a tab is not allowed in indentation", "indent with spaces"
	}
	if text != "" {
		f.message += ": " + text
	}
	f.hint = hint
	return f
}

// useContext reports whether the start of the construct is a better position than the error's own.
func useContext(load *yaml.LoadError) bool {
	return load.ContextMark.Line > 0 &&
		(load.Message == "found unexpected end of stream" || load.Message == "could not find expected ':'")
}

// inside moves a position after the last line, the parser's end of the stream, to the end of the text.
func (c chunk) inside(p Position) Position {
	last := c.position(len(c.text))
	if last.Column == 1 && last.Line > c.line {
		end := len(bytes.TrimRight(c.text, "\r\n"))
		last = c.position(end)
	}
	if p.Line > last.Line {
		return last
	}
	return p
}

// byteAt returns the byte at a position, or 0.
func (c chunk) byteAt(p Position) byte {
	text := c.text
	for line := c.line; line < p.Line; line++ {
		_, rest, found := bytes.Cut(text, []byte{'\n'})
		if !found {
			return 0
		}
		text = rest
	}
	line, _, _ := bytes.Cut(text, []byte{'\n'})
	runes := []rune(string(line[:min(len(line), 4*p.Column)]))
	if p.Column < 1 || p.Column > len(runes) || runes[p.Column-1] > 0x7F {
		return 0
	}
	return byte(runes[p.Column-1])
}

func explain(load *yaml.LoadError) (text, hint string) {
	const (
		indent = "check the indentation of this line and of those before it"
		quote  = "put the value in quotes"
	)
	switch load.Message {
	case "found character that cannot start any token":
		return "a value cannot start with this character", quote
	case "found a tab character that violates indentation",
		"found a tab character where an indentation space is expected":
		return "a tab is not allowed in indentation", "indent with spaces"
	case "mapping values are not allowed in this context":
		return "a colon followed by a space is not allowed here", indent + ", or put the value in quotes"
	case "could not find expected ':'":
		return "a colon is missing after this key", indent + ", and that a colon and a space follow each key"
	case "did not find expected key":
		return "a key is expected here", indent
	case "did not find expected '-' indicator":
		return "a list item with a dash is expected here", indent
	case "did not find expected node content":
		return "a value is expected here", quote
	case "block sequence entries are not allowed in this context":
		return "a list item is not allowed here", "start the list on a new line"
	case "did not find expected ',' or ']'":
		return "a comma or ] is expected here", "close the list with ], or put the value in quotes"
	case "did not find expected ',' or '}'":
		return "a comma or } is expected here", "close the mapping with }, or put the value in quotes"
	case "found unexpected end of stream", "found unexpected document indicator":
		return "an unterminated quoted string", "close the quotes"
	case "found unknown escape character", "did not find expected hexadecimal number",
		"found invalid Unicode character escape code":
		return "an unknown escape in double quotes", "write the backslash twice, or use single quotes"
	case "found undefined tag handle":
		return "an undefined tag", "remove the tag"
	case "found a comment without preceding whitespace":
		return "a space is missing before a comment", "put a space before #, or put the value in quotes"
	case "did not find expected <document start>", "found unexpected content after document-end marker":
		return "text after the end of the document", "put --- on a line before it; " + indent
	case "did not find expected comment or line break", "found an indentation indicator equal to 0":
		return "text after | or >, which must start on the next line", "move the text to the next line and indent it"
	case "mapping keys are not allowed in this context":
		return "a ? is not allowed here", quote
	case "did not find expected alphabetic or numeric character":
		return "a * or & starts an alias or an anchor", quote
	}
	return "", ""
}
