package emit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/machineadm/machineadm/contract/document"
	contract "github.com/machineadm/machineadm/contract/v1alpha1"
)

// separator is what document.Encode writes between two documents.
const separator = "---\n"

// Stream encodes documents in the given order. It reads its own output like a node, and returns an *InvalidError for the first
// document that every node would refuse: for its envelope, for a value that has no form in a document, or for the fields of a
// spec in JSON of a kind of this release. Values that only a plugin can check are left to the plugin.
func Stream(ordered []Document) ([]byte, error) {
	var out bytes.Buffer
	for i := range ordered {
		d := &ordered[i]
		if i > 0 {
			out.WriteString(separator)
		}
		if err := document.Encode(&out, d); err != nil {
			return nil, &InvalidError{Kind: d.Kind, Name: d.Metadata.Name, Violations: []document.Violation{{Message: rootCause(err)}}}
		}
	}
	read, err := document.Decode("", bytes.NewReader(out.Bytes()))
	if err != nil {
		return nil, err
	}
	if len(read.Errors) > 0 {
		return nil, refusal(ordered, read.Errors)
	}
	for i, d := range read.Documents {
		if _, raw := ordered[i].Spec.(json.RawMessage); !raw { // the fields of a struct are those of its kind
			continue
		}
		if err := checkSpec(d); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// rootCause is the message of an error of Encode without the document's number, which is always the first.
func rootCause(err error) string {
	if cause := errors.Unwrap(err); cause != nil {
		return cause.Error()
	}
	return err.Error()
}

// refusal returns the errors of the first document that has one. Positions are omitted: the caller did not write the lines.
func refusal(ordered []Document, all []*document.Error) error {
	first := all[0].Index
	if first < 0 {
		return fmt.Errorf("the stream %s: %s", all[0].Message, all[0].Hint)
	}
	e := &InvalidError{Kind: ordered[first].Kind, Name: ordered[first].Metadata.Name}
	for _, v := range all {
		if v.Index == first {
			e.Violations = append(e.Violations, document.Violation{Field: v.Field, Message: v.Message, Hint: v.Hint})
		}
	}
	return e
}

// checkSpec decodes a document of a kind of this release strictly, as its plugin does.
func checkSpec(d *document.Document) error {
	into := contract.New(d.Kind)
	if d.APIVersion != contract.APIVersion || into == nil {
		return nil
	}
	data, err := d.JSON()
	if err != nil {
		return err
	}
	if violations := document.Unmarshal(data, into); len(violations) > 0 {
		return &InvalidError{Kind: d.Kind, Name: d.Name, Violations: violations}
	}
	return nil
}

// Size is the part of a stream that one document takes.
type Size struct {
	Kind, Name string
	Bytes      int
}

// Sizes returns the size of each document of a stream of Stream, in its order; their sum is the size of the stream.
func Sizes(stream []byte) ([]Size, error) {
	read, err := document.Decode("", bytes.NewReader(stream))
	if err != nil {
		return nil, err
	}
	// The encoder indents every line of a value, so that a separator is never part of one.
	parts := bytes.SplitAfter(stream, []byte("\n"+separator))
	if len(read.Errors) > 0 || len(parts) != len(read.Documents) {
		return nil, errors.New("the stream was not encoded by this package")
	}
	sizes := make([]Size, len(parts))
	for i, d := range read.Documents {
		sizes[i] = Size{Kind: d.Kind, Name: d.Name, Bytes: len(parts[i])}
	}
	return sizes, nil
}
