package document

import (
	"fmt"
	"strings"
	"testing"
)

func TestRefusedYAML(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec string // its first line is line 6, indented by two
		want []string
	}{
		"anchor":            {"a: &x 1", []string{"6:6 spec.a: anchors are refused"}},
		"anchored key":      {"&x a: 1", []string{"6:3 spec: anchors are refused"}},
		"alias":             {"a: &x 1\nb: *x", []string{"6:6 spec.a: anchors are refused", "7:6 spec.b: aliases are refused"}},
		"alias to nothing":  {"b: *x\nc: *y", []string{"6:6 spec.b: aliases are refused", "7:6 spec.c: aliases are refused"}},
		"alias as key":      {"*x : 1", []string{"6:3 spec: aliases are refused"}},
		"merge":             {"a: {b: 1}\n<<: {c: 1}", []string{"7:3 spec: merge keys are refused"}},
		"merge of alias":    {"<<: [*x, *y]", []string{"6:3 spec: merge keys are refused", "6:8 spec[0]: aliases are refused", "6:12 spec[1]: aliases are refused"}},
		"custom tag":        {"a: !secret b\nc: !!set {d}\ne: !<tag:x,1:y> f", []string{"6:6 spec.a: tags are refused", "7:6 spec.c: tags are refused", "8:6 spec.e: tags are refused"}},
		"core tags":         {"a: !!int 1\nb: !!bool true\nc: !!float\nd: !!null x\ne: ! f\ng: !!timestamp 2001-01-01\nh: !!bool", []string{"6:6 spec.a: tags are refused", "7:6 spec.b: tags are refused", "8:6 spec.c: tags are refused", "9:6 spec.d: tags are refused", "10:6 spec.e: tags are refused", "11:6 spec.g: tags are refused", "12:6 spec.h: tags are refused"}},
		"binary":            {"a: !!binary aGk=", []string{"6:6 spec.a: binary values are refused"}},
		"tag of wrong kind": {"a: !!str [b]\nc: !!map d", []string{"6:6 spec.a: tags are refused", "7:6 spec.c: tags are refused"}},
		"tagged key":        {"!!int 1: a", []string{"6:3 spec: tags are refused"}},
		"duplicates":        {"a: 1\nb: {c: 1, c: 2}\na: 2\n\"a\": *x", []string{"7:13 spec.b.c: duplicate key, first on line 7", "8:3 spec.a: duplicate key, first on line 6", "9:3 spec.a: duplicate key, first on line 6", "9:8 spec.a: aliases are refused"}},
		"keys":              {"1: a\n1.5: a\ntrue: a\nnull: a\n: a\n{a: b}: c\n[a]: c\n? [d]\n: e", []string{"6:3 spec: a key that is not a string", "7:3 spec: a key that is not a string", "8:3 spec: a key that is not a string", "9:3 spec: a key that is not a string", "10:3 spec: a key that is not a string", "11:3 spec: a key that is not a string", "12:3 spec: a key that is not a string", "13:5 spec: a key that is not a string"}},
		"long key":          {"? " + strings.Repeat("k", MaxKeyBytes+1) + "\n: a", []string{"6:5 spec: a key longer than 1024 bytes"}},
		"numbers":           {"a: 0640\nb: 1_000\nc: 0b1\nd: .inf\ne: -.INF\nf: .NaN\ng: 18446744073709551616\nh: -9223372036854775809\ni: 089\nj: -00.5", []string{"6:6 spec.a: a number that versions of YAML read differently: leading zero, underscore or binary", "7:6 spec.b: a number that versions of YAML read differently: leading zero, underscore or binary", "8:6 spec.c: a number that versions of YAML read differently: leading zero, underscore or binary", "9:6 spec.d: infinity and NaN are refused", "10:6 spec.e: infinity and NaN are refused", "11:6 spec.f: infinity and NaN are refused", "12:6 spec.g: a number beyond 64 bits", "13:6 spec.h: a number beyond 64 bits", "14:6 spec.i: a number that versions of YAML read differently: leading zero, underscore or binary", "15:6 spec.j: a number that versions of YAML read differently: leading zero, underscore or binary"}},
		"beyond a float":    {"a: 1e400\nb: [-1.5E+999]\n1e400: c", []string{"6:6 spec.a: a number beyond 64 bits", "7:7 spec.b[0]: a number beyond 64 bits", "8:3 spec: a key that is not a string"}},
		"paths":             {"a:\n- b: *x\n- [c, *y]\nnet.ipv4: {\"x y\": *z}", []string{"7:8 spec.a[0].b: aliases are refused", "8:9 spec.a[1][1]: aliases are refused", "9:21 spec[\"net.ipv4\"][\"x y\"]: aliases are refused"}},
		"name is escaped":   {"\"a\\nb\\u202e\\e\": *z", []string{"6:19 spec[\"a\\u000ab\\u202e\\u001b\"]: aliases are refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stream := decode(t, withSpec(c.spec))
			expect(t, brief(stream.Errors), c.want)
			if len(stream.Documents) != 0 {
				t.Error("the document is good all the same")
			}
			for _, e := range stream.Errors {
				if e.Hint == "" || e.Kind != "Widget" || e.Name != "site" {
					t.Errorf("no hint or no name: %v", e)
				}
			}
		})
	}
}

func TestManyDuplicates(t *testing.T) {
	t.Parallel()
	var spec strings.Builder
	for i := range 40 {
		fmt.Fprintf(&spec, "k%d: 1\n", i)
	}
	stream := decode(t, withSpec(spec.String()+"k3: 1\nk39: 1\n"))
	expect(t, brief(stream.Errors), []string{
		"46:3 spec.k3: duplicate key, first on line 9", "47:3 spec.k39: duplicate key, first on line 45",
	})
}

func TestJSON(t *testing.T) {
	t.Parallel()
	for yaml, want := range map[string]string{
		"null":                       `null`,
		"~":                          `null`,
		"":                           `null`,
		"true":                       `true`,
		"False":                      `false`,
		"TRUE":                       `true`,
		"yes":                        `"yes"`,
		"off":                        `"off"`,
		"0":                          `0`,
		"-0":                         `0`,
		"+12":                        `12`,
		"-7":                         `-7`,
		"0x1F":                       `31`,
		"0o17":                       `15`,
		"-0x10":                      `-16`,
		"1.0":                        `1.0`,
		"-0.0":                       `-0.0`,
		".5":                         `0.5`,
		"1.":                         `1.0`,
		"1e3":                        `1000.0`,
		"1E-9":                       `1e-09`,
		"1e22":                       `1e+22`,
		"123456.789":                 `123456.789`,
		"0.1":                        `0.1`,
		"9223372036854775807":        `9223372036854775807`,
		"-9223372036854775808":       `-9223372036854775808`,
		"18446744073709551615":       `18446744073709551615`,
		"2001-01-01":                 `"2001-01-01"`,
		"2001-01-01T00:00:00Z":       `"2001-01-01T00:00:00Z"`,
		"12:30:45":                   `"12:30:45"`,
		"10.0.0.1":                   `"10.0.0.1"`,
		"1e-400":                     `0.0`,
		"\"1e400\"":                  `"1e400"`,
		"!!str 1e400":                `"1e400"`,
		"1e400x":                     `"1e400x"`,
		"1.2.3":                      `"1.2.3"`,
		"<<":                         `"<<"`,
		"\"0640\"":                   `"0640"`,
		"'1'":                        `"1"`,
		"!!str 1":                    `"1"`,
		"!!str":                      `""`,
		"!!seq [1]":                  `[1]`,
		"{}":                         `{}`,
		"[]":                         `[]`,
		"[1, [2, {a: b}], ]":         `[1,[2,{"a":"b"}]]`,
		`"\0\a\t\n\r\e\"\\\N\L\x41"`: "\"\\u0000\\u0007\\t\\n\\r\\u001b\\\"\\\\\\u0085\\u2028A\"",
		"\"<ä>&\U0001F600\\uFEFF\"":  "\"<ä>&\U0001F600\\ufeff\"",
		"'it''s'":                    `"it's"`,
		"|\n    a\n      b\n\n    c": `"a\n  b\n\nc\n"`,
		"|-\n    a":                  `"a"`,
		"|+\n    a\n\n":              `"a\n\n\n"`,
		">\n    a\n    b\n\n    c":   `"a b\nc\n"`,
		"a\n    b":                   `"a b"`,
		"a #b":                       `"a"`,
		"a#b":                        `"a#b"`,
		"{z: 1, a: 2, M: 3}":         `{"z":1,"a":2,"M":3}`,
		"{2001-01-01: 1, yes: 2}":    `{"2001-01-01":1,"yes":2}`,
		"{\"\": 1}":                  `{"":1}`,
	} {
		d := one(t, head+"spec:\n  a: "+yaml+"\n")
		text, ok := strings.CutPrefix(jsonOf(t, d), `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"site"},"spec":{"a":`)
		if text, end := strings.CutSuffix(text, "}}"); !ok || !end || text != want {
			t.Errorf("%s: got %s, want %s", yaml, text, want)
		}
	}
}

func TestJSONIsACopy(t *testing.T) {
	t.Parallel()
	d := one(t, withSpec("a: 1"))
	first, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	clear(first)
	if jsonOf(t, d)[0] != '{' {
		t.Error("the caller's change shows")
	}
	if _, err := (&Document{}).JSON(); err == nil {
		t.Error("a document of no stream has JSON")
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	// The document and its spec are two levels.
	for name, nest := range map[string]func(int) string{
		"flow lists":    func(n int) string { return "a: " + strings.Repeat("[", n) + strings.Repeat("]", n) },
		"flow mappings": func(n int) string { return "a: " + strings.Repeat("{a: ", n) + strings.Repeat("}", n) },
		"block lists":   func(n int) string { return "a:\n    " + strings.Repeat("- ", n) + "1" },
		"block mappings": func(n int) string {
			var text strings.Builder
			text.WriteString("a:")
			for i := range n {
				text.WriteString("\n" + strings.Repeat(" ", i+2) + "a:")
			}
			return text.String()
		},
		"mixed": func(n int) string {
			return "a:\n    " + strings.Repeat("- ", n/2) + strings.Repeat("[", n-n/2) + strings.Repeat("]", n-n/2)
		},
		"pairs in lists": func(n int) string { return "a: " + strings.Repeat("[a: ", n/2) + strings.Repeat("]", n/2) },
	} {
		one(t, withSpec(nest(MaxDepth-2)))
		for _, n := range []int{MaxDepth - 1, MaxDepth, 10 * MaxDepth, 50_000} {
			if n > 1000 && name == "block mappings" {
				continue // its indentation grows with the square
			}
			if n < MaxDepth && name == "pairs in lists" {
				continue // it makes even numbers of levels
			}
			stream := decode(t, withSpec(nest(n)))
			if len(stream.Errors) != 1 || stream.Errors[0].Message != depthMessage || stream.Errors[0].Position.Line < 6 {
				t.Errorf("%s, %d levels: %v", name, n, stream.Errors)
			}
		}
	}
}

// The parser recurses; it is stopped by its own count, before there is a tree to walk over.
func TestParserIsStopped(t *testing.T) {
	t.Parallel()
	for _, text := range []string{strings.Repeat("[", 5000), strings.Repeat("- ", 5000), strings.Repeat("[", 5000) + strings.Repeat("]", 5000)} {
		root, failure := (chunk{text: []byte(text), line: 1}).load()
		if root != nil || failure == nil || failure.message != depthMessage || failure.at.Column > 2*MaxDepth+2 {
			t.Errorf("%.4q: %v, %+v", text, root != nil, failure)
		}
	}
}

func TestTooMuchStructure(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"[" + strings.Repeat("1,", MaxStructure) + "]",
		strings.Repeat("-\n", MaxStructure+1),
		strings.Repeat("{},", MaxStructure),
		strings.Repeat("a:\n", MaxStructure+1),
		strings.Repeat("! ", MaxStructure+1),
		strings.Repeat("&a ", MaxStructure+1),
		strings.Repeat("*a ", MaxStructure+1),
		strings.Repeat("'a' ", MaxStructure+1),
		strings.Repeat(`"a" `, MaxStructure+1),
		strings.Repeat("a # b\n", MaxStructure+1),
	} {
		stream := decode(t, "---\n"+text+"\n---\n"+withSpec("a: 1"))
		if len(stream.Errors) != 1 || !strings.HasPrefix(stream.Errors[0].Message, "has too much structure") || len(stream.Documents) != 1 {
			t.Errorf("%.10q: %v", text, stream.Errors)
		}
	}
}

func TestLocate(t *testing.T) {
	t.Parallel()
	d := one(t, byteOrderMark+"\n\n"+withSpec("servers:\n- address: a\n  iburst: true\n- {address: b}\nnet.ipv4: {\"a\\\"]b\": 1}\nlist: [[1, 2]]"))
	for field, want := range map[string]Position{
		"":                                   {3, 1},
		"kind":                               {4, 1},
		"metadata.name":                      {6, 3},
		"metadata.timeout":                   {5, 1},
		"nothing":                            {3, 1},
		"spec.servers":                       {8, 3},
		"spec.servers[0]":                    {9, 5},
		"spec.servers[0].iburst":             {10, 5},
		"spec.servers[1].address":            {11, 6},
		"spec.servers[1].port":               {11, 5},
		"spec.servers[2].port":               {8, 3},
		"spec.servers.x":                     {8, 3},
		`spec["net.ipv4"]`:                   {12, 3},
		`spec["net.ipv4"]["a\"]b"]`:          {12, 14},
		`spec["servers"][1]`:                 {11, 5},
		"spec.list[0][1]":                    {13, 14},
		"spec.list[0][1].a":                  {13, 14},
		"spec[0]":                            {7, 1},
		"spec.servers[x]":                    {8, 3},
		"spec.servers[":                      {8, 3},
		"spec.servers[-1]":                   {8, 3},
		"spec..servers":                      {7, 1},
		`spec["servers"`:                     {7, 1},
		"spec.servers[99999999999999999999]": {8, 3},
	} {
		if got := d.Locate(field); got != want {
			t.Errorf("%s: got %v, want %v", field, got, want)
		}
	}
	if got := (&Document{Position: Position{7, 1}}).Locate("a"); got != (Position{7, 1}) {
		t.Errorf("a document of no stream: %v", got)
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	spec := Path("").Field("spec")
	for want, got := range map[Path]Path{
		"spec":                                    spec,
		"spec.servers[0].address":                 spec.Field("servers").Index(0).Field("address"),
		`spec.parameters["net.ipv4.ip_forward"]`:  spec.Field("parameters").Key("net.ipv4.ip_forward"),
		`spec.parameters["net.ipv4.ip_forward"] `: spec.Field("parameters").Field("net.ipv4.ip_forward") + " ",
		`["a b"]`:                                 Path("").Field("a b"),
		"spec.plain":                              spec.Key("plain"),
		`spec[""]`:                                spec.Field(""),
		`spec["1"]`:                               spec.Field("1"),
		`spec.a-1_b`:                              spec.Field("a-1_b"),
		`spec["\u202ea\"\u000a"]`:                 spec.Field("\u202ea\"\n"),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
