package document

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error is a fault of a stream. Its texts never quote a value.
type Error struct {
	// File is the name that Decode was given.
	File string
	// Index counts the documents that are not empty from 0; it is -1 when the stream as a whole is at fault.
	Index int
	// Kind and Name are the document's, empty where they are missing or themselves at fault.
	Kind, Name string
	// Field is the path of the field, its names escaped, empty when the document as a whole is at fault.
	Field string
	// Position is zero only when the stream as a whole is at fault.
	Position Position
	// Message says what is wrong, Hint how to mend it; there may be no hint.
	Message, Hint string
}

// Error is FILE:LINE:COLUMN: KIND/NAME: FIELD: MESSAGE, and the hint on a line of its own. What is unknown is left out;
// a document without a kind is named by its number, from 1.
func (e *Error) Error() string {
	var parts []string
	place := e.File
	if e.Position.Line > 0 {
		at := strconv.Itoa(e.Position.Line) + ":" + strconv.Itoa(e.Position.Column)
		if place == "" {
			place = "line " + at
		} else {
			place += ":" + at
		}
	}
	document := e.Kind
	switch {
	case document == "" && e.Index >= 0:
		document = "document " + strconv.Itoa(e.Index+1)
	case document != "" && e.Name != "":
		document += "/" + e.Name
	}
	for _, part := range []string{place, document, shorten(e.Field), e.Message} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	text := strings.Join(parts, ": ")
	if e.Hint != "" {
		text += "\n  hint: " + e.Hint
	}
	return text
}

// Violation is a fault of a document of which only the field is known; Document.Locate knows where that is.
type Violation struct{ Field, Message, Hint string }

// Join adds to the violations that Unmarshal returned those that the caller's own validation of the decoded value found.
// It leaves out what only follows from a decoding fault: a finding about the same field, about a part of it, or about a
// mapping or list that contains it.
func Join(decoding, validation []Violation) []Violation {
	follows := func(v Violation) bool {
		return slices.ContainsFunc(decoding, func(d Violation) bool { return within(v.Field, d.Field) || within(d.Field, v.Field) })
	}
	joined := slices.Clip(decoding)
	for _, v := range validation {
		if !follows(v) {
			joined = append(joined, v)
		}
	}
	return joined
}

// within says whether field is above or a part of it.
func within(field, above string) bool {
	rest, ok := strings.CutPrefix(field, above)
	return ok && (rest == "" || above == "" || rest[0] == '.' || rest[0] == '[')
}

// shownField is how much of a path an error shows: the keys of a hostile document are long.
const shownField = 256

func shorten(field string) string {
	if utf8.RuneCountInString(field) <= shownField {
		return field
	}
	return string([]rune(field)[:shownField]) + "…"
}
