package document

import (
	"bytes"
	"errors"
	"sync"
	"time"

	"github.com/machineadm/machineadm/contract/target"
)

// Stream is a decoded stream.
type Stream struct {
	// File is the file argument of Decode.
	File string
	// Documents are the documents without errors, in order.
	Documents []*Document
	// Faulty are the documents with errors whose apiVersion, kind and spec are readable, in order. They may be planned to
	// find more errors, and never applied. Their JSON has a placeholder name, null for each refused value, and no
	// spec.provider if that is invalid.
	Faulty []*Document
	// Errors are the errors of all documents, in order.
	Errors []*Error
}

// Document is a document with a valid envelope.
type Document struct {
	// Index is the 0-based index among the documents with content, including those with errors.
	Index int
	// Position is the position of the first field.
	Position Position

	APIVersion, Kind, Name string
	// Provider is spec.provider, empty if absent.
	Provider string
	// Timeout is metadata.timeout, 0 if absent.
	Timeout time.Duration
	// When is metadata.when; the zero Selector matches every machine.
	When target.Selector

	// The parser's nodes are not kept, because they take many times the memory of the text; Locate builds a small tree of
	// positions on demand.
	chunk  chunk
	json   []byte
	nameAt Position
	once   sync.Once
	places *place
}

// JSON returns the whole document as compact JSON, with its keys in the document's order. The encoding is deterministic. It
// fails for a Document that Decode did not return.
func (d *Document) JSON() ([]byte, error) {
	if d.json == nil {
		return nil, errors.New("the document was not decoded from a stream")
	}
	return bytes.Clone(d.json), nil
}

// Locate returns the position of a field path: of the key or of the list item, or of the nearest existing ancestor.
func (d *Document) Locate(field string) Position {
	d.once.Do(func() { d.places = d.chunk.places() })
	if d.places == nil {
		return d.Position
	}
	return d.places.find(field)
}
