package document

import (
	"encoding/json"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v4"
)

// Strings reads a mapping of names to strings, such as /etc/machineadm/defaults.yaml, by the rules of a document. An empty
// file is an empty map. The error joins all errors, each an *Error.
func Strings(file string, data []byte) (map[string]string, error) {
	result := map[string]string{}
	c, root, out, faults := single(data)
	if root != nil && root.Kind != yaml.MappingNode {
		faults = append(faults, fault{at: c.at(root), message: "must be a mapping of names to strings"})
	}
	if root != nil && len(faults) == 0 {
		places := c.placeOf("", root, root)
		for _, v := range Unmarshal(out, &result) {
			faults = append(faults, fault{field: Path(v.Field), at: places.find(v.Field), message: v.Message, hint: v.Hint})
		}
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("read a mapping of strings: %w", join(file, faults))
	}
	return result, nil
}

// JSON reads one YAML value by the rules of a document, such as a manifest in a field of a document, and returns it as JSON.
// A text without a value is nil. The error joins all errors, each an *Error.
func JSON(file string, data []byte) (json.RawMessage, error) {
	_, _, out, faults := single(data)
	if len(faults) > 0 {
		return nil, join(file, faults)
	}
	return out, nil
}

// single reads a stream of at most one document. The root is nil if there is none.
func single(data []byte) (chunk, *yaml.Node, []byte, []fault) {
	if len(data) > MaxStreamBytes || otherEncoding(data) {
		return chunk{}, nil, nil, []fault{{message: "is too large or is not UTF-8"}}
	}
	var found checker
	var only *yaml.Node
	var faults []fault
	for c := range split(data) {
		root, failure := c.parse()
		switch {
		case failure != nil:
			faults = append(faults, *failure)
		case root != nil && only != nil:
			return found.chunk, only, nil, append(faults, fault{at: c.at(root), message: "is a second document", hint: "write one document"})
		case root != nil:
			only, found = root, checker{chunk: c}
			found.value(root, 0)
			faults = append(faults, found.faults...)
		}
	}
	return found.chunk, only, found.out, faults
}

func join(file string, faults []fault) error {
	var found []error
	for _, f := range faults {
		found = append(found, &Error{
			File: file, Index: -1, Field: string(f.field), Position: f.at, Message: f.message, Hint: f.hint,
		})
	}
	return errors.Join(found...)
}
