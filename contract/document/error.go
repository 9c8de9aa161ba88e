package document

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Position is a position in a stream. Lines and columns start at 1; columns count characters. Zero means unknown.
type Position struct{ Line, Column int }

// Error is an error of a stream. It never quotes a value.
type Error struct {
	// File is the file argument of Decode.
	File string
	// Index is the 0-based index among the documents with content; -1 for the whole stream.
	Index int
	// Kind and Name identify the document; empty if absent or invalid.
	Kind, Name string
	// Field is the path of the field, with escaped names; empty for the whole document.
	Field string
	// Position is zero for the whole stream.
	Position Position
	// Message describes the error, Hint how to correct it. Hint may be empty.
	Message, Hint string
}

// Error returns FILE:LINE:COLUMN: KIND/NAME: FIELD: MESSAGE, and the hint on a second line. Unknown parts are omitted; a
// document without a kind is named by its number, from 1.
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

// fault is an error within one document.
type fault struct {
	field         Path
	at            Position
	message, hint string
}

// Violation is an error at a field of a document. Document.Locate returns its position.
type Violation struct {
	Field, Message, Hint string
	// Needs is the id of the claim of another document that can resolve a Precondition; with a colon at its end any such claim.
	Needs string
}

// Join joins the violations of Unmarshal with what the caller's validation of the decoded value found. It omits consequences
// of a decoding error: violations of the same field, of a part of it, or of a mapping or list that contains it.
func Join(decoding, validation []Violation) []Violation {
	follows := func(v Violation) bool {
		return slices.ContainsFunc(decoding, func(d Violation) bool { return Within(v.Field, d.Field) || Within(d.Field, v.Field) })
	}
	joined := slices.Clip(decoding)
	for _, v := range validation {
		if !follows(v) {
			joined = append(joined, v)
		}
	}
	return joined
}

// shownField is the longest path in an error, because a hostile document can have long keys.
const shownField = 256

func shorten(field string) string {
	if utf8.RuneCountInString(field) <= shownField {
		return field
	}
	return string([]rune(field)[:shownField]) + "…"
}
