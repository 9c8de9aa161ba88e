package document

import (
	"bytes"
	"errors"
	"sync"
	"time"

	"github.com/machineadm/machineadm/contract/target"
)

// The limits of a stream.
const (
	MaxStreamBytes = 16 << 20
	MaxDocuments   = 10000
	MaxDepth       = 64 // mappings and lists around a value
	MaxKeyBytes    = 1024
	// MaxStructure bounds the commas, colons, brackets, dashes, quotes, tags, anchors, aliases and comments of one document,
	// wherever they stand: the memory that parsing takes grows with them, hundreds of bytes each.
	MaxStructure = 200_000
	// MaxErrors of one document are reported, and ten times as many of a stream.
	MaxErrors = 100
)

// Position is a place in a stream. Lines and columns begin at 1, columns count characters. Zero is unknown.
type Position struct{ Line, Column int }

// Stream is what Decode found.
type Stream struct {
	// File is the name that Decode was given.
	File string
	// Documents are those without a fault, in order.
	Documents []*Document
	// Faulty are those of the others whose apiVersion, kind and spec could be read, in order. They may be planned to find
	// more errors of the same stream, and never applied. Their JSON has another name, null where a value was refused, and
	// no spec.provider when that was at fault.
	Faulty []*Document
	// Errors are the faults of the others, in order.
	Errors []*Error
}

// Document is one document whose envelope is in order.
type Document struct {
	// Index counts the documents of the stream that are not empty from 0, those with faults too.
	Index int
	// Position is where the document's first field stands.
	Position Position

	APIVersion, Kind, Name string
	// Provider is spec.provider, empty when left out.
	Provider string
	// Timeout is metadata.timeout, 0 when left out.
	Timeout time.Duration
	// When is metadata.when; the zero Selector matches every machine.
	When target.Selector

	// The nodes of the parser take many times the memory of the text and are not kept; Locate makes a small tree of places
	// for the few documents in which something is to be pointed at.
	chunk  chunk
	json   []byte
	nameAt Position
	once   sync.Once
	places *place
}

// JSON is the whole document as compact JSON, its keys in the document's order. The same document gives the same bytes.
// The error is for a Document that Decode did not make.
func (d *Document) JSON() ([]byte, error) {
	if d.json == nil {
		return nil, errors.New("the document was not decoded from a stream")
	}
	return bytes.Clone(d.json), nil
}

// Locate is the position of a field path: of the key, or of the list item. Where the document has no such field it
// is the position of the nearest ancestor that exists, at last that of the document.
func (d *Document) Locate(field string) Position {
	d.once.Do(func() { d.places = d.chunk.places() })
	if d.places == nil {
		return d.Position
	}
	return d.places.find(field)
}
