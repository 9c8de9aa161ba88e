package document

import (
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

type header struct {
	APIVersion string   `json:"apiVersion"`
	Metadata   metadata `json:"metadata"`
}

type metadata struct {
	Name string `json:"name"`
}

type common struct {
	Shared string `json:"shared"`
	Size   int    `json:"size"` // hidden by the one of sample
}

// intOrString is one of the types that read themselves, as the contract has them.
type intOrString string

func (v *intOrString) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*v = intOrString(s)
		return nil
	}
	var n int
	if json.Unmarshal(data, &n) == nil {
		*v = intOrString(fmt.Sprint(n))
		return nil
	}
	return fmt.Errorf("must be a string or an integer")
}

type server struct {
	Address string `json:"address"`
	Port    uint16 `json:"port,omitempty"`
}

type sample struct {
	header   `json:",inline"`
	*common  // unexported and behind a pointer: not a field
	Extra    `json:",inline"`
	*Pointed `json:",inline"`

	Text     string                 `json:"text"`
	Size     int8                   `json:"size"`
	Big      int64                  `json:"big"`
	Wide     uint64                 `json:"wide"`
	Ratio    float64                `json:"ratio"`
	Small    float32                `json:"small"`
	On       *bool                  `json:"on"`
	Servers  []server               `json:"servers"`
	Params   map[string]intOrString `json:"params"`
	Free     json.RawMessage        `json:"free"`
	Any      any                    `json:"any"`
	Address  netip.Addr             `json:"address"`
	Pair     [2]int                 `json:"pair"`
	Data     []byte                 `json:"data"`
	Deep     **server               `json:"deep"`
	Number   json.Number            `json:"number"`
	Named    map[named]named        `json:"named"`
	Untagged string
	Ignored  string `json:"-"`
	hidden   string
}

type named string

type Extra struct {
	More string `json:"more"`
}

type Pointed struct {
	Behind string `json:"behind"`
}

const full = `{"apiVersion":"v1","metadata":{"name":"n"},"more":"m","behind":"b","text":"tä\u0041","size":-128,
 "big":9223372036854775807,"wide":18446744073709551615,"ratio":1.5e3,"small":1,"on":true,
 "servers":[{"address":"a","port":65535},{"address":"b"}],"params":{"net.ipv4.ip_forward":1,"x":"y"},
 "free":{"a":[1, 2]},"any":{"a":[1,2.5,"x",null,true,18446744073709551615]},"address":"10.0.0.1","pair":[1,2],"data":"aGk=",
 "deep":{"address":"c"},"number":12,"named":{"k":"v"},"Untagged":"u"}`

func TestUnmarshal(t *testing.T) {
	t.Parallel()
	var got sample
	if violations := Unmarshal([]byte(full), &got); len(violations) > 0 {
		t.Fatal(violations)
	}
	on, deep := true, &server{Address: "c"}
	want := sample{
		header: header{"v1", metadata{"n"}}, Extra: Extra{"m"}, Pointed: &Pointed{"b"},
		Text: "täA", Size: -128, Big: math.MaxInt64, Wide: math.MaxUint64, Ratio: 1500, Small: 1, On: &on,
		Servers: []server{{"a", 65535}, {"b", 0}}, Params: map[string]intOrString{"net.ipv4.ip_forward": "1", "x": "y"},
		Free: json.RawMessage(`{"a":[1, 2]}`), Any: map[string]any{"a": []any{int64(1), 2.5, "x", nil, true, uint64(math.MaxUint64)}},
		Address: netip.MustParseAddr("10.0.0.1"), Pair: [2]int{1, 2}, Data: []byte("hi"), Deep: &deep, Number: "12",
		Named: map[named]named{"k": "v"}, Untagged: "u",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	_ = got.hidden
	// encoding/json agrees, but for what it cannot say.
	var standard sample
	if err := json.Unmarshal([]byte(full), &standard); err != nil {
		t.Fatal(err)
	}
	got.Any, standard.Any = nil, nil
	if !reflect.DeepEqual(got, standard) {
		t.Errorf("encoding/json reads %+v, we read %+v", standard, got)
	}
}

func TestUnmarshalViolations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"txet":"x"}`:                      "txet: unknown field (did you mean text?)",
		`{"Text":"x"}`:                      "Text: unknown field (did you mean text?)",
		`{"shared":"x"}`:                    "shared: unknown field (remove it, or correct its spelling)",
		`{"hidden":"x"}`:                    "hidden: unknown field (remove it, or correct its spelling)",
		`{"Ignored":"x"}`:                   "Ignored: unknown field (remove it, or correct its spelling)",
		`{"metadata":{"labels":{}}}`:        "metadata.labels: unknown field (remove it, or use one of: name)",
		`{"servers":[{"addresss":"a"}]}`:    "servers[0].addresss: unknown field (did you mean address?)",
		`{"text":1}`:                        "text: must be a string (put the value in quotes)",
		`{"text":true}`:                     "text: must be a string (put the value in quotes)",
		`{"text":[]}`:                       "text: must be a string ()",
		`{"text":"a","text":"b"}`:           "text: duplicate field (remove one of the two)",
		`{"size":128}`:                      "size: must be an integer between -128 and 127 ()",
		`{"size":-129}`:                     "size: must be an integer between -128 and 127 ()",
		`{"size":1.0}`:                      "size: must be an integer ()",
		`{"size":1e1}`:                      "size: must be an integer ()",
		`{"size":"1"}`:                      "size: must be an integer (write the number without quotes)",
		`{"big":9223372036854775808}`:       "big: must be an integer between -9223372036854775808 and 9223372036854775807 ()",
		`{"wide":-1}`:                       "wide: must be an integer between 0 and 18446744073709551615 ()",
		`{"wide":18446744073709551616}`:     "wide: must be an integer between 0 and 18446744073709551615 ()",
		`{"servers":[{"port":65536}]}`:      "servers[0].port: must be an integer between 0 and 65535 ()",
		`{"ratio":"x"}`:                     "ratio: must be a number ()",
		`{"ratio":1e999}`:                   "ratio: must be a number that fits in 64 bits ()",
		`{"small":1e39}`:                    "small: must be a number that fits in 32 bits ()",
		`{"on":"true"}`:                     "on: must be true or false ()",
		`{"on":1}`:                          "on: must be true or false ()",
		`{"servers":{}}`:                    "servers: must be a list (write servers: [{address: ...}])",
		`{"servers":[null]}`:                "servers[0]: must have a value (write one, or remove the entry)",
		`{"servers":["a"]}`:                 "servers[0]: must be a mapping (write {address: ...})",
		`{"params":{"a.b":true}}`:           `params["a.b"]: must be a string or an integer ()`,
		`{"params":{"a":1,"a":2}}`:          `params.a: duplicate field (remove one of the two)`,
		`{"params":[]}`:                     "params: must be a mapping (write params: {NAME: ...})",
		`{"named":{"a":null}}`:              `named.a: must have a value (write one, or remove the entry)`,
		`{"free":{"a":[{"b":1,"b":2}]}}`:    "free.a[0].b: duplicate field (remove one of the two)",
		`{"any":[{"b":{"c":1,"c":2}}]}`:     "any[0].b.c: duplicate field (remove one of the two)",
		`{"any":1e999}`:                     "any: must be a number that fits in 64 bits ()",
		`{"address":1}`:                     "address: must be a string (put the value in quotes)",
		`{"address":"10.0.0.256"}`:          "address: does not have the form of this field ()",
		`{"pair":[1]}`:                      "pair: must be a list of 2 items ()",
		`{"data":"%"}`:                      "data: must be base64 ()",
		`{"deep":{"port":"x"}}`:             "deep.port: must be an integer (write the number without quotes)",
		`{"number":"x"}`:                    "number: must be a number ()",
		`[]`:                                ": must be a mapping ()",
		`null`:                              ": must have a value (write one, or remove the entry)",
		`{`:                                 ": is not valid JSON ()",
		``:                                  ": is not valid JSON ()",
		`{"size":"x","on":3,"\u202e":null}`: "size: must be an integer (write the number without quotes)|on: must be true or false ()|[\"\\u202e\"]: unknown field (remove it, or correct its spelling)",
	} {
		into := sample{Text: "before"}
		var got []string
		for _, v := range Unmarshal([]byte(text), &into) {
			got = append(got, fmt.Sprintf("%s: %s (%s)", v.Field, v.Message, v.Hint))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, strings.Join(got, "|"), want)
		}
	}
}

func TestUnmarshalKeepsWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	shared := &Pointed{Behind: "old"}
	on := true
	list := []server{{Address: "old"}}
	table := map[string]intOrString{"old": "1"}
	into := sample{Pointed: shared, On: &on, Servers: list, Params: table, Text: "old", Free: json.RawMessage("1"), Size: 3}
	if v := Unmarshal([]byte(`{"text":null,"on":null,"servers":null,"params":null,"free":null,"behind":null,"size":4}`), &into); len(v) > 0 {
		t.Fatal(v)
	}
	want := sample{Pointed: shared, On: &on, Servers: list, Params: table, Text: "old", Free: json.RawMessage("1"), Size: 4}
	if !reflect.DeepEqual(into, want) {
		t.Errorf("got %+v", into)
	}
	// What the caller's value shares with others is replaced, never written to.
	if v := Unmarshal([]byte(`{"behind":"new","on":false,"servers":[{"port":1}],"params":{"new":1}}`), &into); len(v) > 0 {
		t.Fatal(v)
	}
	if shared.Behind != "old" || !on || list[0].Address != "old" || len(table) != 1 {
		t.Error("what the caller shares was written to")
	}
	if into.Behind != "new" || *into.On || into.Servers[0] != (server{Port: 1}) || len(into.Params) != 1 || into.Text != "old" {
		t.Errorf("got %+v", into)
	}
}

func TestUnmarshalManyViolations(t *testing.T) {
	t.Parallel()
	var into struct {
		List []string `json:"list"`
	}
	v := Unmarshal([]byte(`{"list":[`+strings.Repeat("1,", 5*maxViolations)+`1]}`), &into)
	if len(v) != maxViolations+1 || v[maxViolations].Message != "has more errors than are listed" {
		t.Errorf("got %d violations, the last %v", len(v), v[len(v)-1])
	}
}

// Fields of equal names: the one embedded least deep, then the tagged one, then none.
func TestStructFields(t *testing.T) {
	t.Parallel()
	type A struct {
		X, Y, Z string
	}
	type B struct {
		Y, Z string
		R    string `json:"X"`
	}
	type loop struct {
		A
		B
		Z string
		L *struct{ A }
	}
	value := loop{A: A{"ax", "ay", "az"}, B: B{"by", "bz", "br"}, Z: "z"}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var standard, ours map[string]any
	if err := json.Unmarshal(text, &standard); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := Encode(&out, value); err != nil {
		t.Fatal(err)
	}
	data := jsonOfYAML(t, out.String())
	if err := json.Unmarshal(data, &ours); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(standard, ours) {
		t.Errorf("encoding/json: %v, we: %v", standard, ours)
	}
}

func TestUnmarshalMisuse(t *testing.T) {
	t.Parallel()
	for name, into := range map[string]any{
		"no pointer": sample{}, "nil": (*sample)(nil), "channel": &struct{ A chan int }{}, "keys": &struct{ A map[int]int }{},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			Unmarshal([]byte(`{"A":{}}`), into)
		}()
	}
}
