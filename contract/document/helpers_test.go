package document

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// decode reads a stream that is there in full.
func decode(t testing.TB, text string) *Stream {
	t.Helper()
	stream, err := Decode("f.yaml", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// one reads a stream of a single document without a fault.
// sorted is a sorted copy.
func sorted(lines []string) []string { return slices.Sorted(slices.Values(lines)) }

func one(t testing.TB, text string) *Document {
	t.Helper()
	stream := decode(t, text)
	for _, e := range stream.Errors {
		t.Errorf("unexpected error: %v", e)
	}
	if len(stream.Documents) != 1 {
		t.Fatalf("got %d documents, want 1", len(stream.Documents))
	}
	return stream.Documents[0]
}

// brief lists errors as LINE:COLUMN FIELD: MESSAGE.
func brief(errs []*Error) []string {
	var lines []string
	for _, e := range errs {
		lines = append(lines, fmt.Sprintf("%d:%d %s: %s", e.Position.Line, e.Position.Column, e.Field, e.Message))
	}
	return lines
}

func jsonOf(t testing.TB, d *Document) string {
	t.Helper()
	data, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// head is an envelope in order; a spec follows.
const head = "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: site\n"

// withSpec is a document whose spec is the given lines, indented; the first of them is line 6.
func withSpec(lines string) string {
	return head + "spec:\n  " + strings.ReplaceAll(strings.TrimSuffix(lines, "\n"), "\n", "\n  ") + "\n"
}

// expect compares lists of lines.
func expect(t testing.TB, got, want []string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// jsonOfYAML is the JSON of the first document of a stream, whatever its envelope.
func jsonOfYAML(t testing.TB, text string) []byte {
	t.Helper()
	for c := range split([]byte(text)) {
		root, failure := c.parse()
		if failure != nil {
			t.Fatalf("%+v\nin %q", failure, text)
		}
		if root == nil {
			continue
		}
		check := checker{chunk: c}
		check.value(root, 0)
		if len(check.faults) > 0 {
			t.Fatalf("%+v\nin %q", check.faults, text)
		}
		return check.out
	}
	t.Fatalf("no document in %q", text)
	return nil
}
