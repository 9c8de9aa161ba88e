package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// update is read by the golden tests: go test ./contract/document -update.
var update = flag.Bool("update", false, "write the golden files")

type zero struct{ n int }

func (z zero) IsZero() bool                  { return z.n < 5 }
func (z zero) MarshalText() ([]byte, error)  { return []byte("zero"), nil }
func (z *zero) UnmarshalText(_ []byte) error { z.n = 5; return nil }

type encoded struct {
	header `json:",inline"`
	*Pointed
	Spec struct {
		Empty    string            `json:"empty,omitempty"`
		Kept     string            `json:"kept"`
		Zero     zero              `json:"zero,omitzero"`
		Five     zero              `json:"five,omitzero"`
		When     time.Time         `json:"when,omitzero"`
		Duration time.Duration     `json:"duration"`
		Secret   secret            `json:"secret"`
		Pointer  *secret           `json:"pointer,omitempty"`
		None     *int              `json:"none"`
		List     []any             `json:"list"`
		NoList   []string          `json:"noList"`
		Some     []string          `json:"some,omitempty"`
		Table    map[string]string `json:"table"`
		Raw      json.RawMessage   `json:"raw"`
		Number   json.Number       `json:"number"`
		Ratio    float64           `json:"ratio"`
		Small    float32           `json:"small"`
		Data     []byte            `json:"data"`
		Script   string            `json:"script"`
		On       bool              `json:"on"`
	} `json:"spec"`
}

func newEncoded() encoded {
	e := encoded{header: header{"example.com/v1", metadata{"site"}}}
	e.Spec.Five = zero{5}
	e.Spec.Duration = 5
	e.Spec.Secret = "s3cret: #1\n"
	e.Spec.List = []any{
		1, "1", []any{}, []any{"a", []any{"b"}}, map[string]any{}, map[string]any{"a": []any{map[string]any{"b": nil, "c": "x\ny"}}}, true,
	}
	e.Spec.Table = map[string]string{
		"net.ipv4.ip_forward": "1", "z": "yes", "a": "- b", "~": "~", "1": "0640", "with space": "a: b", "#": "#", "": "", "<<": "<<", "y": "n",
	}
	e.Spec.Raw = json.RawMessage(` {"z" : 1, "a": [1.5e3, -0, {"k": "\u2028\u0000"}]}`)
	e.Spec.Number = "12"
	e.Spec.Ratio = 1
	e.Spec.Small = 0.1
	e.Spec.Data = []byte{0, 255}
	e.Spec.Script = "#!/bin/sh\nset -e\n\n\techo \"hi\"\n  done # x\n---\n...\n"
	return e
}

func TestEncodeGolden(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := Encode(&out, newEncoded(), map[string]any{"apiVersion": "v1", "kind": "A", "metadata": metadata{"b"}, "spec": struct{}{}}); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "encode.golden.yaml")
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != strings.ReplaceAll(string(want), "\r\n", "\n") {
		t.Errorf("got:\n%s", got)
	}
	for range 20 {
		var again bytes.Buffer
		if err := Encode(&again, newEncoded()); err != nil || !strings.HasPrefix(out.String(), again.String()+"---\n") {
			t.Fatalf("the bytes differ from run to run: %v", err)
		}
	}
}

// What Decode reads of what Encode wrote is what encoding/json writes, but for the secrets, which it never writes.
func TestEncodeRoundTrip(t *testing.T) {
	t.Parallel()
	value := newEncoded()
	var out strings.Builder
	if err := Encode(&out, value); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(jsonOfYAML(t, out.String()), &got); err != nil {
		t.Fatal(err)
	}
	type plain encoded
	standard := plain(value)
	spec, ok := got["spec"].(map[string]any)
	if !ok {
		t.Fatal("no spec")
	}
	if s, ok := spec["secret"].(map[string]any); !ok || s["value"] != "s3cret: #1\n" || len(s) != 1 {
		t.Errorf("the secret is %v", spec["secret"])
	}
	delete(spec, "secret")
	var want map[string]any
	text, err := json.Marshal(struct {
		header
		Spec any `json:"spec"`
	}{standard.header, map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	want["spec"] = map[string]any{
		"kept": "", "five": "zero", "duration": 5.0, "none": nil, "noList": nil, "number": 12.0, "ratio": 1.0, "small": 0.1,
		"data": "AP8=", "script": value.Spec.Script, "on": false,
		"raw":   map[string]any{"z": 1.0, "a": []any{1500.0, 0.0, map[string]any{"k": "\u2028\x00"}}},
		"table": map[string]any{"net.ipv4.ip_forward": "1", "z": "yes", "a": "- b", "~": "~", "1": "0640", "with space": "a: b", "#": "#", "": "", "<<": "<<", "y": "n"},
		"list":  []any{1.0, "1", []any{}, []any{"a", []any{"b"}}, map[string]any{}, map[string]any{"a": []any{map[string]any{"b": nil, "c": "x\ny"}}}, true},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// randomValue makes values of everything that YAML could take for something else.
func randomValue(r *rand.Rand, depth int) any {
	text := func() string {
		if r.IntN(4) == 0 {
			words := []string{"", "true", "No", "~", "null", "1", "0x1", "1e3", "-", "- a", "a: b", "a #b", "#", "<<", "---", "...", "%a", "@", "`", "!a", "&a", "*a", "|", ">", "?", "? a", ":", "a:", "'", "\"", "[", "{", "2001-01-01", ".inf", "1_0", "0640", "\uFEFF", "y", "=", "a\n", "\na", "a\n\n", " a\nb", "a\n b\n", "a\r\nb", "a \nb", "a\n \nb", "\ta\nb", "a\n\tb", "a\n#b\n", "a\n---\nb", "\n\n", "é\nü\n", "a\u2028\nb"}
			return words[r.IntN(len(words))]
		}
		alphabet := []rune("aB9 \t\n\n:-#,[]{}&*!|>'\"%@`\\?~=<./_+é\u00A0\u0085\u2028\uFEFF\U0001F600\x00\x1b\r\x7f\uFFFD")
		var s strings.Builder
		for range r.IntN(12) {
			s.WriteRune(alphabet[r.IntN(len(alphabet))])
		}
		return s.String()
	}
	n := 9
	if depth == 0 {
		n = 7
	}
	switch r.IntN(n) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return r.Int64() - math.MaxInt64/2
	case 3:
		return math.Float64frombits(r.Uint64()>>12 | uint64(r.IntN(2046))<<52)
	case 4, 5, 6:
		return text()
	case 7:
		list := make([]any, r.IntN(4))
		for i := range list {
			list[i] = randomValue(r, depth-1)
		}
		return list
	}
	table := map[string]any{}
	for range r.IntN(4) {
		table[text()] = randomValue(r, depth-1)
	}
	return table
}

func TestEncodeRandomRoundTrip(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		roundTrip(t, map[string]any{"spec": randomValue(r, 4), strings.Repeat("long: key ", r.IntN(40)): int64(1)})
	}
}

// roundTrip writes and reads value and compares. Unmarshal keeps integers and floats apart.
func roundTrip(t *testing.T, value map[string]any) {
	t.Helper()
	var out strings.Builder
	if err := Encode(&out, value); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if v := Unmarshal(jsonOfYAML(t, out.String()), &got); len(v) > 0 {
		t.Fatal(v)
	}
	if !reflect.DeepEqual(got, value) {
		t.Fatalf("got  %#v\nwant %#v\nin\n%s", got, value, out.String())
	}
}

// What any version of YAML reads as something else than this very string is quoted.
func TestEncodeQuotes(t *testing.T) {
	t.Parallel()
	for _, text := range strings.Fields("null Null ~ true TRUE false False yes Yes no NO on off y N 0 1 -1 +1 0640 0x1 1e3 .5 .inf .nan 1_0 12:30 2001-01-01 - -- ? a: :a ! & * | > % @ ` # [ { = << a#") {
		if isPlain(text) {
			t.Errorf("%s is written without quotes", text)
		}
	}
	for _, text := range []string{"", " a", "a ", "a: b", "a #b", "a  b", "a\tb", "ä", "a,b", "a\n"} {
		if isPlain(text) {
			t.Errorf("%q is written without quotes", text)
		}
	}
	for _, text := range []string{"a", "ntp1.example.com", "hello world", "http://a:80/b", "/etc/x", "a-b_c=d", "nullx", "user@host", "v1.2+3"} {
		if !isPlain(text) {
			t.Errorf("%q is written in quotes for no reason", text)
		}
	}
}

func TestEncodeErrors(t *testing.T) {
	t.Parallel()
	type self struct {
		Next *self `json:"next"`
	}
	loop := &self{}
	loop.Next = loop
	for name, c := range map[string]struct {
		doc  any
		want string
	}{
		"scalar":     {5, "encode document 2: it must be a mapping with at least one field"},
		"nil":        {nil, "encode document 2: it must be a mapping with at least one field"},
		"empty":      {struct{}{}, "encode document 2: it must be a mapping with at least one field"},
		"loop":       {loop, "nests deeper than 64 levels"},
		"NaN":        {map[string]any{"a": []any{math.NaN()}}, `encode document 2: a[0]: infinity and NaN have no form in a document`},
		"channel":    {map[string]any{"a": make(chan int)}, `encode document 2: a: the type chan int has no form in a document`},
		"keys":       {map[string]any{"a": map[int]int{1: 1}}, `encode document 2: a: the keys of a map must be strings`},
		"UTF-8":      {map[string]any{"a": "\xFF"}, `encode document 2: a: is not valid UTF-8`},
		"UTF-8 key":  {map[string]any{"\xFF": "a"}, "encode document 2: a key is not valid UTF-8"},
		"long key":   {map[string]any{strings.Repeat("a", MaxKeyBytes+1): 1}, "encode document 2: a key longer than 1024 bytes"},
		"raw":        {map[string]any{"a": json.RawMessage("{")}, `encode document 2: a: is not valid JSON`},
		"duplicate":  {map[string]any{"a": json.RawMessage(`[{"b":1,"b":2}]`)}, `encode document 2: a[0].b: duplicate field`},
		"big number": {map[string]any{"a": json.RawMessage(`1e999`)}, `encode document 2: a: a number beyond 64 bits`},
		"big int":    {map[string]any{"a": json.Number("18446744073709551616")}, `encode document 2: a: a number beyond 64 bits`},
		"deep raw":   {map[string]any{"a": json.RawMessage(strings.Repeat("[", 100) + strings.Repeat("]", 100))}, "nests deeper than 64 levels"},
	} {
		var out bytes.Buffer
		err := Encode(&out, map[string]any{"a": 1}, c.doc)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
		if out.Len() > 0 {
			t.Errorf("%s: %d bytes were written", name, out.Len())
		}
	}
	if err := Encode(&bytes.Buffer{}); err == nil {
		t.Error("no document: no error")
	}
	broken := errors.New("broken")
	if err := Encode(failing{broken}, map[string]any{"a": 1}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
