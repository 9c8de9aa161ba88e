package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/machineadm/machineadm/contract/naming"
)

// No stream makes Decode panic, every fault of a document has a place inside the stream, and what is good is JSON that
// survives being written and read again.
func FuzzDecode(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		stream := decode(t, text)
		lines := 1 + strings.Count(text, "\n")
		for _, e := range stream.Errors {
			if e.Message == "" || e.Index < -1 {
				t.Errorf("%+v", e)
			}
			if p := e.Position; e.Index >= 0 && (p.Line < 1 || p.Line > lines || p.Column < 1) {
				t.Errorf("%v is at %v of %d lines", e, p, lines)
			}
			if !utf8.ValidString(e.Error()) {
				t.Errorf("%q is not valid UTF-8", e.Error())
			}
		}
		if len(stream.Errors)+len(stream.Documents) == 0 {
			t.Error("neither a document nor an error")
		}
		for _, d := range stream.Documents {
			data := jsonOf(t, d)
			var value map[string]any
			if !json.Valid([]byte(data)) {
				t.Errorf("not JSON: %s", data)
			}
			if v := Unmarshal([]byte(data), &value); len(v) > 0 {
				t.Errorf("%v in %s", v, data)
			}
			if naming.ValidKind(d.Kind) != nil || naming.ValidName(d.Name) != nil || d.APIVersion == "" || d.Timeout < 0 {
				t.Errorf("a good document that is not: %+v", d)
			}
			if d.Locate("metadata.name").Line < 1 || d.Locate("spec") == d.Position && d.Locate("kind") == d.Position {
				t.Errorf("the fields are nowhere: %v", d.places)
			}
			roundTrip(t, value)
		}
	})
}

// Documents are where the YAML parser finds them, and nothing is lost.
func FuzzSplit(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		line, roots := 1, 0
		var joined strings.Builder
		for c := range split([]byte(text)) {
			if c.line != line {
				t.Errorf("a chunk says line %d and begins on %d", c.line, line)
			}
			line += bytes.Count(c.text, []byte{'\n'})
			joined.Write(c.text)
			markers := 0
			for l := range bytes.Lines(c.text) {
				if isMarker(l, '-') {
					markers++
				}
			}
			if markers > 1 {
				t.Errorf("two documents in %q", c.text)
			}
			if root, failure := c.parse(); failure == nil && root != nil {
				roots++
			}
		}
		if strings.ReplaceAll(joined.String(), byteOrderMark, "") != strings.ReplaceAll(text, byteOrderMark, "") {
			t.Errorf("%q became %q", text, joined.String())
		}
		if offset, _, _ := badCharacter([]byte(text)); offset >= 0 || strings.HasPrefix(text, "%") || strings.Contains(text, "\n%") {
			return // what we refuse and the parser does not
		}
		if want, err := countDocuments(text); err == nil && roots != want {
			t.Errorf("%q: the parser finds %d documents, we %d", text, want, roots)
		}
	})
}

// countDocuments asks the parser for the documents of a whole stream that are not empty.
func countDocuments(text string) (int, error) {
	loader, err := yaml.NewLoader(strings.NewReader(text), yaml.WithPlugin(&rules{}))
	if err != nil {
		return 0, err
	}
	for n := 0; ; {
		var doc yaml.Node
		if err := loader.Load(&doc); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return 0, err
		}
		root := doc.Content[0]
		if root.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			// The parser reads on over a marker when the block is the document itself; YAML forbids that (c-forbidden).
			return 0, errors.New("a block without a key")
		}
		if root.Tag != "!!null" || root.Value != "" || root.Style != 0 || root.Anchor != "" {
			n++
		}
	}
}

// What Unmarshal takes, encoding/json takes as well and reads as the same. What it refuses does not change how the other
// fields are read.
func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte("{\"text\":\"\xef\xef\"}"))
	f.Add([]byte(`{"text":1,"servers":[{"port":"x"},{"address":"a"}],"size":3,"behind":"b"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		into := sample{Text: "before"}
		violations := Unmarshal(data, &into)
		if len(violations) > 0 {
			rest, refused := withoutRefused(data, violations)
			var again sample
			if refused[""] {
				return
			}
			if v := Unmarshal(rest, &again); len(v) > 0 {
				t.Fatalf("%q: refused without %v for %v", rest, violations, v)
			}
			for _, field := range structFields(reflect.TypeFor[sample]()) {
				got, _ := reflect.ValueOf(into).FieldByIndexErr(field.index)
				want, _ := reflect.ValueOf(again).FieldByIndexErr(field.index)
				if !refused[field.name] && field.name != "text" && want.IsValid() &&
					(!got.IsValid() || !reflect.DeepEqual(got.Interface(), want.Interface())) {
					t.Errorf("%q: %s is %v, alone %v", data, field.name, got, want)
				}
			}
			return
		}
		if bytes.Contains(data, []byte("null")) {
			return // left out for us, zero for encoding/json
		}
		standard := sample{Text: "before"}
		if err := json.Unmarshal(data, &standard); err != nil {
			t.Fatalf("encoding/json refuses %q: %v", data, err)
		}
		into.Any, standard.Any = nil, nil // integers stay integers
		if !reflect.DeepEqual(into, standard) {
			t.Errorf("got %+v, want %+v", into, standard)
		}
	})
}

// withoutRefused is the object without the fields in which something is refused, and the names of those.
func withoutRefused(data []byte, violations []Violation) (rest []byte, refused map[string]bool) {
	refused = map[string]bool{}
	for _, v := range violations {
		first, _, _ := nextStep(v.Field)
		refused[first.name] = true
	}
	object, _ := readTree(data)
	rest = []byte{'{'}
	for _, m := range object.members {
		if refused[m.name] {
			continue
		}
		if len(rest) > 1 {
			rest = append(rest, ',')
		}
		rest = append(appendString(rest, m.name), ':')
		rest = append(rest, m.value.raw...)
	}
	return append(rest, '}'), refused
}

// Any text survives, as a value and as a key, at every place where it can stand.
func FuzzEncode(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string, key string) {
		if !utf8.ValidString(text) || !utf8.ValidString(key) || len(key) > MaxKeyBytes {
			return
		}
		if structure([]byte(text)) > MaxStructure/8 {
			return
		}
		roundTrip(t, map[string]any{
			key: text, "a": []any{text, []any{text, key}, map[string]any{key: text, "z": text}}, "m": map[string]any{"a": text, key: key}, "z": text,
		})
	})
}
