package wrap

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const streamCanary = "c4n4ry: of a stream\nmore: \"'\n"

// TestUserPart: cloud-init drops a part that it cannot read, and the machine joins without it.
func TestUserPart(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"#cloud-config\nusers:\n\t- name: operator\n":                          "line 3 of the output of the template is not YAML",
		"#cloud-config\nruncmd:\n- echo value: of a: thing > /var/ran\n":       "line 3 of the output of the template is not YAML",
		"#cloud-config\nwrite_files:\n- path: /a\n  content: 'it's broken'\n":  "of the output of the template is not YAML",
		"#cloud-config\nruncmd: [a]\nusers: []\nruncmd: [b]\n":                 "line 4 of the output of the template has a key twice in a mapping",
		"#cloud-config\nwrite_files:\n- path: /a\n  path: /b\n":                "line 4 of the output of the template has a key twice in a mapping",
		"#cloud-config\n- a\n- b\n":                                            "is no mapping of keys to values in YAML",
		"#cloud-config\n":                                                      "is no mapping of keys to values in YAML",
		"#cloud-config\njust a sentence\n":                                     "is no mapping of keys to values in YAML",
		"#cloud-config\nusers: [\n":                                            "is not YAML",
		"#cloud-config\na: b\n\xff: c\n":                                       "line 3 of the output of the template is not text in UTF-8",
		"#cloud-config\na: \"\x00\"\n":                                         "line 2 of the output of the template is not text in UTF-8",
		"#!/bin/sh\r\ntrue\r\n":                                                "line 1 of the output of the template ends in a carriage return",
		"#cloud-config\r\nruncmd:\r\n- [touch, /a]\r\n":                        "",
		"#cloud-config\na: &x [1]\nb: *x\n":                                    "",
		"#cloud-config\n# only a comment before\nruncmd:\n- \"a: b\"\n":        "",
		"#!/bin/sh\necho \"a: b: c\" '\n":                                      "",
		"#cloud-boothook\n#!/bin/sh\necho a\n":                                 "",
		"#cloud-config\nwrite_files:\n- content: |\n    a: b: c\n  path: /a\n": "",
	} {
		checkOne(t, Format{}, text, want)
	}
}

// TestWholeTemplate: the output is what spec.format.type says.
func TestWholeTemplate(t *testing.T) {
	t.Parallel()
	const file = "write_files:\n- {path: /a, encoding: gz+b64, content: \"{{ gzipBase64 machine_config }}\"}\n"
	const files = `"storage": {"files": [{"path": "/a", "contents": {"source": "{{ dataURL machine_config }}"}}]}}`
	for kind, cases := range map[string]map[string]string{
		cloudConfig: {
			"#cloud-config\n" + file:   "",
			file:                       "line 1 of the output of the template must begin with one of #cloud-config, ",
			"\n#cloud-config\n" + file: "line 1 of the output of the template must begin with one of",
			"#cloud-config\nwrite_files:\n- path: /a\n  content: {{ machine_config }}\n":                "encode what machine_config returns",
			"#cloud-config\nwrite_files:\n- path: /a\n  content: {{ json machine_config }}\n":           "",
			"#cloud-config\n" + file + "\truncmd: []\n":                                                 "line 4 of the output of the template is not YAML",
			"#cloud-config\n" + file + "write_files: []\n":                                              "line 4 of the output of the template has a key twice",
			"#!/bin/sh\nbase64 -d >/a <<EOF\n{{ base64 machine_config }}\nEOF\n":                        "",
			"#!/bin/sh\r\nbase64 -d >/a <<EOF\n{{ base64 machine_config }}\nEOF\n":                      "carriage return",
			`{"ignition": {"version": "3.3.0"}, ` + files:                                               "line 1 of the output of the template must begin with one of",
			"#cloud-config-archive\n- {type: text/cloud-config, content: {{ json machine_config }}}":    "",
			asMIME("text/cloud-config", "#cloud-config\n"+file):                                         "",
			asMIME("text/cloud-config", "- a\n"+file):                                                   "has a part 1 that is not YAML",
			asMIME("text/cloud-config", "#cloud-config\na: 1\na: 2\n"+file):                             "has a part 1 that has a key twice in a mapping",
			strings.Replace(asMIME("text/plain", "{{ base64 machine_config }}"), "--x--", "", 1):        "has no part 1 that ends",
			strings.Replace(asMIME("text/plain", "{{ base64 machine_config }}"), "; boundary=x", "", 1): "is no MIME message with parts",
		},
		ignition: {
			`{"ignition": {"version": "3.3.0"}, ` + files:                      "",
			`{"ignition": {"version": "3.3.0"}, ` + files + "}":                "is no Ignition configuration in JSON",
			`{"ignition": {"version": "2.3.0"}, ` + files:                      "must have ignition.version of 3.0.0 to 3.5.0",
			`{"ignition": {"version": "3.9.0"}, ` + files:                      "must have ignition.version",
			`{"ignition": {"version": "3.3"}, ` + files:                        "must have ignition.version",
			`{"ignition": {}, ` + files:                                        "must have ignition.version",
			`{"ignition": "3.3.0", ` + files:                                   "is no Ignition configuration in JSON",
			"{\"ignition\": {\"version\": \"3.3.0\"},\n\"a\": [1,],\n" + files: "line 2 of the output of the template is no Ignition configuration",
			"[{{ json machine_config }}]":                                      "is no Ignition configuration",
			"#cloud-config\n" + file:                                           "is no Ignition configuration",
			`{"ignition": {"version": "3.3.0"}, "a": "{{ machine_config }}"}`:  "encode what machine_config returns",
		},
		cloudbaseInit: {
			"#cloud-config\n" + file:                                   "",
			"#ps1_sysnative\r\n$a = '{{ base64 machine_config }}'\r\n": "",
			"rem cmd\r\necho {{ base64 machine_config }}\r\n":          "",
			"$a = '{{ base64 machine_config }}'\n":                     "must begin with one of",
			"#cloud-config\n" + file + "write_files: []\n":             "has a key twice",
		},
		unattend: {
			`<?xml version="1.0"?><unattend><a>{{ xml machine_config }}</a></unattend>`: "",
			`<unattend><a>{{ xml machine_config }}</unattend>`:                          "is no answer file in XML",
			`<other>{{ xml machine_config }}</other>`:                                   "is no answer file in XML",
			`{{ base64 machine_config }}`:                                               "is no answer file in XML",
		},
		talos: {
			"version: v1alpha1\n---\nkind: A\ncontent: {{ json machine_config }}\n": "",
			"version: v1alpha1\n---\n- {{ json machine_config }}\n":                 "is no mapping",
		},
		combustion: {
			"#!/bin/sh\n# combustion: network\nbase64 -d <<E >/a\n{{ base64 machine_config }}\nE\n": "",
			"#!/bin/sh\nbase64 -d <<E >/a\n{{ base64 machine_config }}\nE\n":                        "# combustion:",
			"# combustion: network\n{{ base64 machine_config }}\n":                                  "# combustion:",
		},
		plain: {"\xff{{ machine_config }}": ""},
	} {
		for text, want := range cases {
			checkOne(t, Format{Type: kind}, text, want)
		}
	}
	checkOne(t, Format{Type: ignition, Version: "3.4"}, `{"ignition": {"version": "3.3.0"}, `+files, "must have the ignition.version of spec.format.version, 3.4.0")
}

func asMIME(kind, content string) string {
	return "Content-Type: multipart/mixed; boundary=x\nMIME-Version: 1.0\n\n--x\nContent-Type: " + kind + "\n\n" + content + "\n--x--\n"
}

func checkOne(t *testing.T, f Format, text, want string) {
	t.Helper()
	f.Template = []byte(text)
	began := time.Now()
	_, err := new(Wrapper).Wrap(f, []byte(streamCanary))
	if want == "" {
		require.NoError(t, err, text)
		return
	}
	require.ErrorContains(t, err, want, text)
	assert.NotContains(t, err.Error(), "c4n4ry", text)
	assert.Less(t, time.Since(began), 10*time.Second)
	_, longer := new(Wrapper).Wrap(f, []byte(strings.Repeat(streamCanary, 50)))
	assert.Equal(t, err.Error(), longer.Error(), "no line depends on the stream")
}

func FuzzCheckWhole(f *testing.F) {
	for _, text := range []string{"#cloud-config\na: b\n", asMIME("text/cloud-config", "a: b"), `{"ignition": {"version": "3.3.0"}}`, "<unattend/>", "#!/bin/sh\n# combustion: a\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range []string{cloudConfig, cloudbaseInit, ignition, unattend, talos, combustion} {
			if bad := checkWhole(Format{Type: kind}, []byte(text)); bad != nil {
				assert.NotEmpty(t, bad.message)
				assert.LessOrEqual(t, bad.line, len(text)+2)
			}
		}
	})
}
