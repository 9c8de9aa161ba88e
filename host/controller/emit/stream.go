package emit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

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
		if _, raw := ordered[i].Spec.(json.RawMessage); !raw { // a struct has the fields of its kind
			if err := checkRefused(ordered[i].Kind, ordered[i].Metadata.Name, ordered[i].Spec); err != nil {
				return nil, err
			}
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
		return fmt.Errorf("the stream %s: %s", Unplaced(all[0]).Message, all[0].Hint)
	}
	e := &InvalidError{Kind: ordered[first].Kind, Name: ordered[first].Metadata.Name}
	for _, v := range all {
		if v.Index == first {
			e.Violations = append(e.Violations, document.Violation{Field: v.Field, Message: Unplaced(v).Message, Hint: v.Hint})
		}
	}
	return e
}

// Unplaced returns an error of a stream without lines and columns: they tell the length of the secret values in front of them.
func Unplaced(e *document.Error) *document.Error {
	unplaced := *e
	unplaced.Position = document.Position{}
	unplaced.Message = regexp.MustCompile(`(?:, first)? on line [0-9]+`).ReplaceAllString(e.Message, "")
	return &unplaced
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
	return checkRefused(d.Kind, d.Name, into)
}

// checkRefused refuses what every node refuses.
func checkRefused(kind, name string, of any) error {
	if all := document.Refused(of); len(all) > 0 {
		return &InvalidError{Kind: kind, Name: name, Violations: all}
	}
	return nil
}
