package document

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v4"
)

// Strings reads a mapping of names to strings, such as /etc/machineadm/defaults.yaml, by the rules of a document. An empty
// file is an empty map. The error joins all errors, each an *Error.
func Strings(file string, data []byte) (map[string]string, error) {
	result := map[string]string{}
	var found []error
	report := func(f fault) {
		found = append(found, &Error{
			File: file, Index: -1, Field: string(f.field), Position: f.at, Message: f.message, Hint: f.hint,
		})
	}
	if len(data) > MaxStreamBytes || otherEncoding(data) {
		report(fault{message: "is too large or is not UTF-8"})
		return nil, errors.Join(found...)
	}
	documents := 0
	for c := range split(data) {
		root, failure := c.parse()
		if failure != nil {
			report(*failure)
			continue
		}
		if root == nil {
			continue
		}
		if documents++; documents > 1 {
			report(fault{at: c.at(root), message: "is a second document", hint: "write one mapping"})
			break
		}
		check := checker{chunk: c}
		check.value(root, 0)
		for _, f := range check.faults {
			report(f)
		}
		if root.Kind != yaml.MappingNode {
			report(fault{at: c.at(root), message: "must be a mapping of names to strings"})
			continue
		}
		if len(check.faults) == 0 {
			places := c.placeOf("", root, root)
			for _, v := range Unmarshal(check.out, &result) {
				report(fault{field: Path(v.Field), at: places.find(v.Field), message: v.Message, hint: v.Hint})
			}
		}
	}
	if len(found) > 0 {
		return nil, fmt.Errorf("read a mapping of strings: %w", errors.Join(found...))
	}
	return result, nil
}
