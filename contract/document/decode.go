package document

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"go.yaml.in/yaml/v4"
)

// Decode reads a stream and collects the errors of all documents in Stream.Errors, errors of the whole stream included; file
// labels them. Decode itself fails only if r fails.
func Decode(file string, r io.Reader) (*Stream, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxStreamBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the document stream: %w", err)
	}
	d := decoder{stream: &Stream{File: file}, names: map[string]int{}}
	switch {
	case len(data) > MaxStreamBytes:
		d.whole(fmt.Sprintf("is larger than %d MiB", MaxStreamBytes>>20), "split it, or remove large files from it")
	case otherEncoding(data):
		d.whole("is UTF-16 or UTF-32, or not text", "save the file as UTF-8")
	default:
		d.read(data)
	}
	return d.stream, nil
}

type decoder struct {
	stream *Stream
	names  map[string]int // kind/name -> line of the first
	count  int            // documents with content
	json   []byte         // buffer for the JSON of a document
}

// whole reports an error of the stream itself.
func (d *decoder) whole(message, hint string) {
	d.stream.Errors = append(d.stream.Errors, &Error{File: d.stream.File, Index: -1, Message: message, Hint: hint})
}

func (d *decoder) read(data []byte) {
	for c := range split(data) {
		if len(d.stream.Errors) >= 10*MaxErrors {
			d.whole(fmt.Sprintf("reading ended on line %d: the stream has too many errors", c.line), "correct the errors above first")
			return
		}
		doc, faults := d.document(c)
		if doc == nil {
			continue
		}
		if d.count == MaxDocuments {
			d.whole(fmt.Sprintf("has more than %d documents: reading ended on line %d", MaxDocuments, c.line), "split the stream")
			return
		}
		doc.Index = d.count
		d.count++
		if f := d.unique(doc); f != nil {
			faults = append(faults, *f)
		}
		if len(faults) == 0 {
			d.stream.Documents = append(d.stream.Documents, doc)
			continue
		}
		d.report(doc, faults)
		if doc.readable() {
			d.stream.Faulty = append(d.stream.Faulty, doc)
		}
	}
	if d.count == 0 {
		d.whole("contains no document", "write at least one document, with apiVersion, kind, metadata and spec")
	}
}

// unique registers the name of a document and reports a duplicate.
func (d *decoder) unique(doc *Document) *fault {
	if doc.Kind == "" || doc.Name == "" {
		return nil
	}
	first, taken := d.names[doc.Kind+"/"+doc.Name]
	if !taken {
		d.names[doc.Kind+"/"+doc.Name] = doc.nameAt.Line
		return nil
	}
	return &fault{
		field: "metadata.name", at: doc.nameAt,
		message: fmt.Sprintf("duplicates the name of the %s on line %d", doc.Kind, first),
		hint:    "give each document of a kind a unique name",
	}
}

// report adds the faults of a document to the errors, in the order of their positions.
func (d *decoder) report(doc *Document, faults []fault) {
	slices.SortStableFunc(faults, func(a, b fault) int {
		return cmp.Or(cmp.Compare(a.at.Line, b.at.Line), cmp.Compare(a.at.Column, b.at.Column))
	})
	for _, f := range faults {
		d.stream.Errors = append(d.stream.Errors, &Error{
			File: d.stream.File, Index: doc.Index, Kind: doc.Kind, Name: doc.Name,
			Field: string(f.field), Position: f.at, Message: f.message, Hint: f.hint,
		})
	}
}

// document decodes a chunk; nil if it is empty. With faults, the document has its valid fields only.
func (d *decoder) document(c chunk) (*Document, []fault) {
	doc := &Document{chunk: c}
	root, failure := c.parse()
	if failure != nil {
		if found, ok := foreignRoot(c.text, &yaml.Node{}); ok {
			failure = &fault{at: Position{Line: c.line, Column: 1}, message: found.message, hint: found.hint}
		}
		return doc, []fault{*failure}
	}
	if root == nil {
		return nil, nil
	}
	doc.Position = c.at(root)
	if found, ok := foreignRoot(c.text, root); ok {
		doc.Kind = foreignKind(root)
		return doc, []fault{{at: doc.Position, message: found.message, hint: found.hint}}
	}
	check := checker{chunk: c, out: d.json[:0]}
	check.value(root, 0)
	e := envelope{chunk: c, doc: doc}
	e.read(root)
	faults := append(check.faults, e.faults...)
	if check.more {
		faults = append(faults, fault{at: doc.Position, message: "has more errors than are listed", hint: "correct the listed errors first"})
	}
	d.json = check.out
	doc.json = bytes.Clone(check.out)
	return doc, faults
}

// readable reports whether a plugin can plan a document with faults, and sets its JSON for that.
func (d *Document) readable() bool {
	var whole struct {
		Spec map[string]json.RawMessage `json:"spec"`
	}
	if d.APIVersion == "" || d.Kind == "" || json.Unmarshal(d.json, &whole) != nil || whole.Spec == nil {
		return false
	}
	if d.Provider == "" {
		delete(whole.Spec, "provider")
	}
	var err error
	d.json, err = json.Marshal(map[string]any{
		"apiVersion": d.APIVersion, "kind": d.Kind, "metadata": map[string]string{"name": "faulty"}, "spec": whole.Spec,
	})
	return err == nil
}
