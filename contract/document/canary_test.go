package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

const canary = "hunter2Canary"

// Every kind of fault, each with the canary as the value or inside of it: no text may show it.
func TestNoErrorQuotesAValue(t *testing.T) {
	t.Parallel()
	values := []string{
		"!" + canary + " x", "!!" + canary + " x", "!<" + canary + "> x", "!a!" + canary + " x", "&" + canary + " x", "*" + canary,
		"@" + canary, "`" + canary, "%" + canary, "\"" + canary, "'" + canary, "[" + canary, "{a: " + canary, "[" + canary + "}",
		canary + ": x: y", "\"\\q" + canary + "\"", "\"\\u" + canary + "\"", "|" + canary, ">9 " + canary, "- " + canary, "? " + canary,
		"!!binary " + canary, "!!int " + canary, "!!float " + canary, "!!bool " + canary, "!!null " + canary, "!!timestamp " + canary,
		canary + "\x00", canary + "\xFF", canary + "\u2028", canary + "\r" + canary, "\uFEFF" + canary,
		"a\n\t" + canary + ": b", "\n\t" + canary, canary + "\n " + canary + ": b\n" + canary, "<<: *" + canary,
		"[[" + canary + "], " + strings.Repeat("[", 100), "{" + canary + ": 1, " + canary + ": 2",
	}
	fields := []string{"apiVersion: %s\n", "kind: %s\n", "metadata: %s\n", "metadata: {name: %s}\n", "metadata: {name: a, timeout: %s}\n", "metadata: {name: a, when: %s}\n", "metadata: {name: a, when: {os: [%s]}}\n", "spec: %s\n", "spec: {provider: %s}\n", "spec:\n  provider: %s\n", "spec:\n  deep:\n  - a: %s\n", "other: %s\n", "%s\n", "...%s\n", "... %s\n", "--- %s\n", "%%%s\n"}
	valid := []string{canary, "_" + canary, "'" + canary + "'", "[" + canary + "]", "{a: " + canary + "}", "\"\\e" + canary + "\"", "|\n    " + canary}
	errorsSeen := 0
	check := func(text string) {
		stream := decode(t, text)
		for _, e := range stream.Errors {
			errorsSeen++
			if strings.Contains(strings.ToLower(e.Error()), strings.ToLower(canary)) && !nameOf(text, e) {
				t.Errorf("the error shows the value: %q\nof %q", e.Error(), text)
			}
		}
	}
	for _, field := range fields {
		for _, value := range append(values, valid...) {
			check(fmt.Sprintf(field, value))
			check("apiVersion: v1\nkind: A\n" + fmt.Sprintf(field, value))
			check(withSpec("a: 1") + fmt.Sprintf(field, value))
		}
	}
	if errorsSeen < 500 {
		t.Errorf("only %d errors: the test tests nothing", errorsSeen)
	}
}

// nameOf says whether the canary shows in an error because it is the name of a field: names may be shown.
func nameOf(text string, e *Error) bool {
	rest := strings.ReplaceAll(e.Error(), e.Field, "")
	return strings.Contains(e.Field, canary) && !strings.Contains(rest, canary) &&
		(strings.Contains(text, canary+":") || strings.Contains(text, "? "+canary) || strings.Contains(text, "{"+canary))
}

// leaky quotes what it reads, as types of the standard library do.
type leaky struct{}

func (*leaky) UnmarshalJSON(data []byte) error { return fmt.Errorf("cannot use %s", data) }

type inner struct{ n int }

func (n *inner) UnmarshalJSON(data []byte) error {
	var s struct{ N int }
	return errors.Join(json.Unmarshal(data, &s.N), json.Unmarshal(data, &n.n))
}

func TestNoViolationQuotesAValue(t *testing.T) {
	t.Parallel()
	type all struct {
		Bool    bool              `json:"bool"`
		Int     int8              `json:"int"`
		Uint    uint              `json:"uint"`
		Float   float32           `json:"float"`
		Bytes   []byte            `json:"bytes"`
		List    []int             `json:"list"`
		Map     map[string]int    `json:"map"`
		Time    time.Time         `json:"time"`
		Address netip.Addr        `json:"address"`
		Prefix  netip.Prefix      `json:"prefix"`
		Leaky   leaky             `json:"leaky"`
		Number  inner             `json:"number"`
		JSON    json.Number       `json:"json"`
		Struct  struct{ A int }   `json:"struct"`
		Strings map[string]string `json:"strings"`
	}
	names := []string{"bool", "int", "uint", "float", "bytes", "list", "map", "time", "address", "prefix", "leaky", "number", "json", "struct", "strings"}
	for _, value := range []string{`"` + canary + `"`, `["` + canary + `"]`, `{"a":"` + canary + `"}`, "424242424242424242424242424242424242424242.5"} {
		for _, name := range names {
			var into all
			violations := Unmarshal([]byte(`{"`+name+`":`+value+`}`), &into)
			if len(violations) == 0 && name != "strings" && name != "float" && name != "json" {
				t.Errorf("%s takes %s", name, value)
			}
			for _, v := range violations {
				if text := v.Field + v.Message + v.Hint; strings.Contains(text, canary) || strings.Contains(text, "424242") {
					t.Errorf("%s shows the value: %+v", name, v)
				}
			}
		}
	}
	var into all
	for _, v := range Unmarshal([]byte(`{"a":"`+canary), &into) {
		if strings.Contains(v.Message, canary) {
			t.Error(v)
		}
	}
}

// An error of Encode quotes no value either.
func TestNoEncodeErrorQuotesAValue(t *testing.T) {
	t.Parallel()
	for _, doc := range []any{
		map[string]any{"a": canary + "\xFF"},
		map[string]any{"a": secret(canary + "\xFF")},
		map[string]any{"a": json.RawMessage(`{"a":"` + canary + `"`)},
		map[string]any{"a": json.RawMessage(`{"a":1,"a":"` + canary + `"}`)},
		map[string]any{"a": json.Number("1" + canary)},
		canary,
		[]string{canary},
	} {
		var out bytes.Buffer
		err := Encode(&out, doc)
		if err == nil || strings.Contains(err.Error(), canary) || out.Len() > 0 {
			t.Errorf("%T: %v, %d bytes written", doc, err, out.Len())
		}
	}
}

type secret string

func (s secret) Reveal() []byte               { return []byte(s) }
func (s secret) MarshalJSON() ([]byte, error) { return nil, errors.New("a secret is not marshaled") }
