package document

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What decodes is filled in beside the violations, so that a caller's own validation can run on it.
func TestUnmarshalFillsWhatDecodes(t *testing.T) {
	t.Parallel()
	on := true
	for text, c := range map[string]struct {
		want   sample
		fields []string
	}{
		`{"nothing":1,"text":"new","size":4}`: {sample{Text: "new", Size: 4}, []string{"nothing"}},
		`{"text":1,"size":4}`:                 {sample{Text: "before", Size: 4}, []string{"text"}},
		`{"text":"a","text":"b"}`:             {sample{Text: "a"}, []string{"text"}},
		`{"servers":[{"address":"a","port":65536},7,{"port":1}]}`: {
			sample{Text: "before", Servers: []server{{Address: "a"}, {}, {Port: 1}}}, []string{"servers[0].port", "servers[1]"},
		},
		`{"params":{"a":true,"b":1}}`: {
			sample{Text: "before", Params: map[string]intOrString{"a": "", "b": "1"}}, []string{`params.a`},
		},
		`{"on":"true","deep":{"address":"c","port":"x"}}`: {
			sample{Text: "before", Deep: deepServer("c")}, []string{"on", "deep.port"},
		},
		`{"on":true,"deep":[]}`:                    {sample{Text: "before", On: &on}, []string{"deep"}},
		`{"address":"10.0.0.256","ratio":2}`:       {sample{Text: "before", Ratio: 2}, []string{"address"}},
		`{"metadata":{"name":"n","labels":{}}}`:    {sample{Text: "before", header: header{Metadata: metadata{"n"}}}, []string{"metadata.labels"}},
		`{"free":{"a":1,"a":2},"size":4}`:          {sample{Text: "before", Size: 4}, []string{"free.a"}},
		`{"pair":[1,"x"],"data":"%","number":"x"}`: {sample{Text: "before", Pair: [2]int{1, 0}}, []string{"pair[1]", "data", "number"}},
	} {
		into := sample{Text: "before"}
		var fields []string
		for _, v := range Unmarshal([]byte(text), &into) {
			fields = append(fields, v.Field)
		}
		assert.Equal(t, c.fields, fields, text)
		assert.Equal(t, c.want, into, text)
	}
}

func deepServer(address string) **server {
	s := &server{Address: address}
	return &s
}

// A type that fails half-way does not leave the half behind.
func TestUnmarshalRestoresWhatFails(t *testing.T) {
	t.Parallel()
	into := struct{ Half halfRead }{Half: halfRead{A: "before"}}
	require.Len(t, Unmarshal([]byte(`{"Half":"x"}`), &into), 1)
	assert.Equal(t, "before", into.Half.A)
}

type halfRead struct{ A string }

func (h *halfRead) UnmarshalJSON([]byte) error {
	h.A = "half"
	return errors.New("half")
}

func TestJoin(t *testing.T) {
	t.Parallel()
	v := func(fields ...string) (list []Violation) {
		for _, f := range fields {
			list = append(list, Violation{Field: f})
		}
		return list
	}
	for name, c := range map[string]struct{ decoding, validation, want []Violation }{
		"nothing":              {nil, nil, nil},
		"validation alone":     {nil, v("", "spec.a"), v("", "spec.a")},
		"beside":               {v("spec.x"), v("spec.a", "spec.xy", "spec.b[0]"), v("spec.x", "spec.a", "spec.xy", "spec.b[0]")},
		"the same":             {v("spec.a[1]"), v("spec.a[1]", "spec.a[10]"), v("spec.a[1]", "spec.a[10]")},
		"a part of it":         {v("spec.a"), v("spec.a[0].b", `spec.a.k`, "spec.ab"), v("spec.a", "spec.ab")},
		"what contains it":     {v("spec.a[0].b"), v("", "spec", "spec.a", "spec.a[0]", "spec.a[0].c"), v("spec.a[0].b", "spec.a[0].c")},
		"the whole document":   {v(""), v("spec.a"), v("")},
		"no field is repeated": {v("spec.a", "spec.b"), v("spec.b", "spec.a"), v("spec.a", "spec.b")},
	} {
		assert.Equal(t, c.want, Join(c.decoding, c.validation), name)
	}
}
