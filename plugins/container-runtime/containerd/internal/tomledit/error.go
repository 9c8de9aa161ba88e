package tomledit

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2/unstable"
)

// Error is an error in a document, or the reason why an edit is not possible. It names keys and never quotes values.
type Error struct {
	// Path is what the edit was about; nil for an error in the document itself.
	Path []string
	// Line and Column count from 1, columns in characters; zero without a place.
	Line, Column int
	Message      string
}

// Error is PATH: line LINE, column COLUMN: MESSAGE, without what is unknown.
func (e *Error) Error() string {
	text := e.Message
	if e.Line > 0 {
		text = "line " + strconv.Itoa(e.Line) + ", column " + strconv.Itoa(e.Column) + ": " + text
	}
	if len(e.Path) > 0 {
		text = dottedKey(e.Path) + ": " + text
	}
	return text
}

func (d *Document) fault(at int, format string, args ...any) *Error {
	before := d.data[:at]
	start := bytes.LastIndexByte(before, '\n') + 1
	return &Error{
		Line: 1 + bytes.Count(before, []byte("\n")), Column: 1 + utf8.RuneCount(before[start:]),
		Message: fmt.Sprintf(format, args...),
	}
}

// syntax converts an error of the parser.
func (d *Document) syntax(parser *unstable.Parser, err error) error {
	var fault *unstable.ParserError
	if !errors.As(err, &fault) {
		return &Error{Message: "not TOML"}
	}
	return d.fault(int(parser.Range(fault.Highlight).Offset), "%s", reason(fault.Message))
}

// ownMessages are the beginnings of the parser's messages that do not quote the document. The first match counts.
const ownMessages = "array is incomplete|arrays and inline tables are nested more than the maximum|" +
	"basic strings cannot have control characters|basic strings cannot have new lines|" +
	"carriage returns are not allowed in comments|carriage returns must be followed by a newline character|" +
	"control characters are not allowed in comments|decimal point must be followed by a digit|" +
	"escape sequence is not a valid unicode code point|expected ',' or ']' after array value|" +
	"expected ',' or '}' after inline table key-value|expected '=' after key|expected ']' to close table name|" +
	"expected ']]' to close array table name|expected digit|expected keyword|expected key|expected newline|" +
	"expected number after sign|expected value|exponent must contain at least one digit|" +
	"inline table is incomplete|integers cannot have leading zeroes|invalid character at start of key|" +
	"invalid escape character|invalid hexadecimal digit in unicode escape sequence|" +
	"literal strings cannot have control characters|literal strings cannot have new lines|" +
	"multiline basic string not terminated|multiline basic strings cannot have control characters|" +
	"multiline literal string not terminated|multiline literal strings cannot have control characters|" +
	"need a character after|number must have at least one digit between underscores|" +
	"radix prefix must be followed by at least one digit|sign is not allowed on numbers with a radix prefix|" +
	"strings must be quoted|too many quotes at the end of a multiline basic string|" +
	"too many quotes at the end of a multiline literal string|unexpected character|" +
	"unexpected comma in inline table|unicode escape sequence is too short|unterminated basic string|" +
	"unterminated literal string"

// reason is the part of a parser's message that does not quote the document.
func reason(message string) string {
	for own := range strings.SplitSeq(ownMessages, "|") {
		if strings.HasPrefix(message, own) {
			return "not TOML: " + own
		}
	}
	return "not TOML"
}
