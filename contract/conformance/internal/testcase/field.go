package testcase

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
)

// UnknownName is a field that no kind has.
const UnknownName = "conformanceUnknownField"

// Parse reads a JSON document for editing. Numbers stay as they are written.
func Parse(data []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var out map[string]any
	if err := decoder.Decode(&out); err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	return out, nil
}

// With returns the document with the field name set in the mapping at parents, which is made if it is missing. Its error
// is a parent that is no mapping.
func With(data []byte, value any, parents []string, name string) ([]byte, error) {
	root, err := Parse(data)
	if err != nil {
		return nil, err
	}
	at := root
	for _, parent := range parents {
		if at[parent] == nil {
			at[parent] = map[string]any{}
		}
		next, ok := at[parent].(map[string]any)
		if !ok {
			return nil, errors.New(parent + " is no mapping")
		}
		at = next
	}
	at[name] = value
	return json.Marshal(root)
}

// Without returns the document without the field name of the mapping parent.
func Without(data []byte, parent, name string) ([]byte, error) {
	root, err := Parse(data)
	if err != nil {
		return nil, err
	}
	if at, is := root[parent].(map[string]any); is {
		delete(at, name)
	}
	return json.Marshal(root)
}

// ReplaceWord returns the document with every string that holds the word replaced by the result of replace.
func ReplaceWord(data []byte, word string, replace func(string) any) ([]byte, error) {
	root, err := Parse(data)
	if err != nil {
		return nil, err
	}
	edited := Walk(root, "", func(_ document.Path, text string) any {
		if strings.Contains(text, word) {
			return replace(text)
		}
		return text
	})
	return json.Marshal(edited)
}

// FieldsWith returns the paths of the strings that hold the word.
func FieldsWith(data []byte, word string) ([]string, error) {
	root, err := Parse(data)
	if err != nil {
		return nil, err
	}
	var out []string
	Walk(root, "", func(p document.Path, text string) any {
		if strings.Contains(text, word) {
			out = append(out, string(p))
		}
		return text
	})
	slices.Sort(out)
	return out, nil
}

// Walk returns value with every string replaced by the result of visit, in the order of the keys.
func Walk(value any, p document.Path, visit func(document.Path, string) any) any {
	switch value := value.(type) {
	case string:
		return visit(p, value)
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			value[key] = Walk(value[key], p.Field(key), visit)
		}
	case []any:
		for i := range value {
			value[i] = Walk(value[i], p.Index(i), visit)
		}
	}
	return value
}

// Encode returns JSON for document.Unmarshal; nil is an empty mapping.
func Encode(value any) ([]byte, error) {
	if value == nil {
		value = map[string]any{}
	}
	return json.Marshal(value)
}
