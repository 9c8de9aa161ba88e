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

// syntax turns an error of the parser into a fault. The parser's texts can quote the document, so only known ones are
// passed on, in our words.
func (c chunk) syntax(err error, r *rules) *fault {
	f := &fault{at: Position{Line: c.line, Column: 1}, message: "is not valid YAML"}
	var load *yaml.LoadError
	if !errors.As(err, &load) {
		return f
	}
	mark := load.Mark
	if mark.Line == 0 || startsThere(load) {
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
		text, hint = "a tab stands where only spaces may", "indent with spaces"
	}
	if text != "" {
		f.message += ": " + text
	}
	f.hint = hint
	return f
}

// startsThere says whether the beginning of the construct tells more than the place where the parser gave up.
func startsThere(load *yaml.LoadError) bool {
	return load.ContextMark.Line > 0 &&
		(load.Message == "found unexpected end of stream" || load.Message == "could not find expected ':'")
}

// inside keeps a position out of the line after the last one, where the parser sees the end of the stream.
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

// byteAt is the byte at a position, 0 when there is none.
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
		return "no value can begin with this character", quote
	case "found a tab character that violates indentation",
		"found a tab character where an indentation space is expected":
		return "a tab stands where only spaces may", "indent with spaces"
	case "mapping values are not allowed in this context":
		return "a colon with a blank after it cannot stand here", indent + ", or put the value in quotes"
	case "could not find expected ':'":
		return "no colon follows what begins here", indent + ", and that each key is followed by a colon and a blank"
	case "did not find expected key":
		return "a key is expected here", indent
	case "did not find expected '-' indicator":
		return "an item of a list, with its dash, is expected here", indent
	case "did not find expected node content":
		return "a value is expected here", quote
	case "block sequence entries are not allowed in this context":
		return "an item of a list cannot stand here", "begin the list on a line of its own"
	case "did not find expected ',' or ']'":
		return "a comma or ] is expected here", "close the list with ], or put the value in quotes"
	case "did not find expected ',' or '}'":
		return "a comma or } is expected here", "close the mapping with }, or put the value in quotes"
	case "found unexpected end of stream", "found unexpected document indicator":
		return "quoted text that has no end", "close the quotes"
	case "found unknown escape character", "did not find expected hexadecimal number",
		"found invalid Unicode character escape code":
		return "a backslash with no meaning in double quotes", "write it twice, or use single quotes"
	case "found undefined tag handle":
		return "a tag that is not defined", "remove the tag"
	case "found a comment without preceding whitespace":
		return "a comment needs a blank before it", "put a blank before #, or put the value in quotes"
	case "did not find expected <document start>", "found unexpected content after document-end marker":
		return "text after the end of the document", "put --- on a line before it; " + indent
	case "did not find expected comment or line break", "found an indentation indicator equal to 0":
		return "text where a block of text (| or >) must begin on the next line", "move the text to the next line and indent it"
	case "mapping keys are not allowed in this context":
		return "a ? cannot stand here", quote
	case "did not find expected alphabetic or numeric character":
		return "a * or & begins an alias or an anchor", quote
	}
	return "", ""
}
