package wrap

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTemplate(t *testing.T) {
	t.Parallel()
	const stream = "a: \"<&>\"\n"
	for in, want := range map[string]string{
		"{{ machine_config }}":                                              stream,
		"{{ machine_config | base64 }}":                                     "YTogIjwmPiIK",
		"{{ base64 (machine_config) }}":                                     "YTogIjwmPiIK",
		"{{ machine_config | json }}":                                       `"a: \"<&>\"\n"`,
		"{{ machine_config | xml }}":                                        "a: &#34;&lt;&amp;&gt;&#34;&#xA;",
		"{{ machine_config | dataURL }}":                                    "data:;base64,YTogIjwmPiIK",
		"{{- /* a comment */ -}} {{ machine_config }}":                      stream,
		"{{ $x := machine_config }}{{ $x | base64 }}":                       "YTogIjwmPiIK",
		"{{ $x := base64 `b` }}{{ $x = base64 `c` }}{{ $x }}":               "Yw==",
		"{{ if machine_config }}{{ machine_config | xml | json }}{{ end }}": `"a: &#34;&lt;&amp;&gt;&#34;&#xA;"`,
		"{{ if false }}{{ machine_config }}{{ else if 1 }}no{{ end }}":      "no",
		"{{ with $x := machine_config }}{{ $x | dataURL }}{{ end }}":        "data:;base64,YTogIjwmPiIK",
		"{{ `a` }}{{ 1 }}{{ true }}":                                        "a1true",
		"":                                                                  "",
	} {
		out, whole, err := new(Wrapper).execute([]byte(in), []byte(stream))
		require.NoError(t, err, in)
		assert.Equal(t, want, string(out), in)
		assert.Equal(t, strings.Contains(in, "machine_config") && !strings.Contains(in, "false"), whole, in)
	}
}

const templateCanary = "c4n4ry0fATemplate"

func TestTemplateRefuses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"{{ if machine_config }}kubeconfig{{ end }}":                "the template calls machine_config and does not write what it returns",
		"{{ $x := machine_config | base64 }}{{ $x = `a` }}{{ $x }}": "the template calls machine_config and does not write what it returns",
		"\n{{ " + templateCanary + " }}":                            "line 2 of the template calls a function that is not supported; there are machine_config, base64, gzipBase64, json, xml, dataURL",
		"{{ printf `" + templateCanary + "` }}":                     "line 1 of the template calls a function",
		"{{ call machine_config }}":                                 "calls a function",
		"{{ html `a` }}{{ js `a` }}{{ urlquery `a` }}":              "calls a function",
		"{{ print 1 }}":                                                  "calls a function",
		"{{ len machine_config }}":                                       "calls a function",
		"{{ if and true (index `a` 0) }}{{ end }}":                       "calls a function",
		"\n\n{{ ." + templateCanary + " }}":                              "line 3 of the template uses data",
		"{{ . }}":                                                        "uses data",
		"{{ $ }}":                                                        "uses data",
		"{{ $." + templateCanary + " }}":                                 "uses data",
		"{{ (machine_config)." + templateCanary + " }}":                  "uses data",
		"{{ $x := machine_config }}{{ $x.Len }}":                         "uses data",
		"a\n{{ range 1000000000 }}{{ end }}":                             "line 2 of the template has a loop",
		"{{ range $i := 5 }}{{ break }}{{ end }}":                        "has a loop",
		"{{ if true }}\n{{ range 5 }}{{ end }}{{ end }}":                 "line 2 of the template has a loop",
		"{{ if false }}{{ else }}{{ range 5 }}{{ end }}{{ end }}":        "has a loop",
		"{{ template `template` }}":                                      "uses another template",
		"{{ define `a` }}{{ template `a` }}{{ end }}{{ template `a` }}":  "defines a template of its own",
		"{{ block `a` 1 }}" + templateCanary + "{{ end }}":               "defines a template of its own",
		"{{ " + templateCanary:                                           "line 1 of the template has a syntax error",
		"\n\n{{ if }}" + templateCanary:                                  "line 3 of the template has a syntax error",
		"{{ $" + templateCanary + " }}":                                  "has a syntax error",
		"\n{{ json 5 }}":                                                 "line 2 of the template cannot be executed: machine_config has no argument",
		"{{ json }}":                                                     "cannot be executed",
		"{{ machine_config `" + templateCanary + "` }}":                  "cannot be executed",
		"{{ `" + templateCanary + "` 1 }}":                               "cannot be executed",
		strings.Repeat("{{ machine_config }}", 9000):                     "has an output of more than 1048576 bytes",
		"{{ $x := `\"` }}" + strings.Repeat("{{ $x = json $x }}\n", 60):  "the template encodes more than 4194304 bytes",
		strings.Repeat("{{ base64 `a` }}", maxActions+1):                 "the template has more than 10000 actions",
		strings.Repeat("x", maxTemplate+1):                               "the template is larger than 524288 bytes",
		strings.Repeat("{{ if machine_config }}", 9000) + templateCanary: "has a syntax error",
	} {
		began := time.Now()
		_, _, err := new(Wrapper).execute([]byte(in), []byte(strings.Repeat("c4n4ry-0f-a-stream\n", 20)))
		var wrong *TemplateError
		require.ErrorAs(t, err, &wrong, "%.80s", in)
		assert.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "c4n4ry")
		assert.Nil(t, errors.Unwrap(err), "the library's error quotes the template")
		assert.Less(t, time.Since(began), 20*time.Second)
	}
}

// Nothing that a template does takes long, also in depth.
func TestTemplateIsDeep(t *testing.T) {
	t.Parallel()
	const depth = 4000
	out, _, err := new(Wrapper).execute([]byte(strings.Repeat("{{ if 1 }}", depth)+"a"+strings.Repeat("{{ end }}", depth)), nil)
	require.NoError(t, err)
	assert.Equal(t, "a", string(out))
	_, _, err = new(Wrapper).execute([]byte("{{"+strings.Repeat("(", 20000)+"1"+strings.Repeat(")", 20000)+"}}"), nil)
	assert.ErrorContains(t, err, "has a syntax error")
}

func FuzzTemplate(f *testing.F) {
	for _, in := range []string{
		"", "{{", "{{ machine_config | gzipBase64 | json }}", "{{ range 9 }}{{ end }}", "{{ $x := 1 }}{{ if $x }}a{{ else }}b{{ end }}",
		"{{ define `a` }}{{ end }}", "{{ with xml `<` }}{{ end }}", "{{ dataURL (base64 `a`) }}", "{{/* */}}", "{{ nil }}", "{{ 1 | json }}",
	} {
		f.Add(in)
	}
	const stream = "zqj7-stream\n"
	f.Fuzz(func(t *testing.T, in string) {
		out, whole, err := new(Wrapper).execute([]byte(in), []byte(stream))
		if err != nil {
			var wrong *TemplateError
			require.ErrorAs(t, err, &wrong)
			assert.LessOrEqual(t, wrong.Line, 1+strings.Count(in, "\n"))
			assert.NotContains(t, err.Error(), "zqj7")
			return
		}
		assert.LessOrEqual(t, len(out), maxOutput)
		assert.True(t, !whole || strings.Contains(in, "machine_config"))
	})
}

// FuzzEncode: what the functions encode is decoded to the same text.
func FuzzEncode(f *testing.F) {
	f.Add("a\n---\n<&>\"'\x00\u2028")
	f.Fuzz(func(t *testing.T, text string) {
		assert.Equal(t, text, unpacked(t, encoded(new(Wrapper).packed([]byte(text)))))
		if utf8.ValidString(text) { // JSON has no form for anything else
			var back string
			require.NoError(t, json.Unmarshal([]byte(quoted(text)), &back))
			assert.Equal(t, text, back)
		}
	})
}
