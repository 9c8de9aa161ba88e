package v1alpha1_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

func TestIntOrString(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		data string
		want v1alpha1.IntOrString
		bad  bool
	}{
		{data: `0`, want: "0"},
		{data: `-1`, want: "-1"},
		{data: `9223372036854775807`, want: "9223372036854775807"},
		{data: `18446744073709551615`, want: "18446744073709551615"},
		{data: `"4096\t131072 6291456"`, want: "4096\t131072 6291456"},
		{data: `""`, want: ""},
		{data: `"0x10"`, want: "0x10"},
		{data: `18446744073709551616`, bad: true},
		{data: `-9223372036854775809`, bad: true},
		{data: `1.5`, bad: true},
		{data: `1e3`, bad: true},
		{data: `true`, bad: true},
		{data: `null`, bad: true},
		{data: `["canary"]`, bad: true},
		{data: `{"canary":1}`, bad: true},
		{data: `"canary`, bad: true},
	} {
		v := v1alpha1.IntOrString("before")
		switch err := v.UnmarshalJSON([]byte(c.data)); {
		case c.bad && err == nil:
			t.Errorf("%s was read as %q", c.data, v)
		case c.bad && (v != "before" || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "1")):
			t.Errorf("%s: value %q, error %v", c.data, v, err)
		case !c.bad && (err != nil || v != c.want):
			t.Errorf("%s was read as %q, %v", c.data, v, err)
		}
	}
}

// TestSysctlDocument: every field of the kind is read strictly, and written back.
func TestSysctlDocument(t *testing.T) {
	t.Parallel()
	const text = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: Sysctl
metadata:
  name: node
  timeout: 5m
  when:
    os:
      - linux
spec:
  provider: procfs
  parameters:
    kernel.panic: "10"
    net.ipv4.tcp_rmem: 4096 131072 6291456
  profiles:
    - kubernetes
  modules:
    - overlay
  ignoreMissing:
    - kernel.x
  providerConfig:
    anything:
      - 1
`
	data := decode(t, text)
	var doc v1alpha1.Sysctl
	if violations := document.Unmarshal(data, &doc); len(violations) > 0 {
		t.Fatalf("violations %+v", violations)
	}
	var out strings.Builder
	if err := document.Encode(&out, doc); err != nil {
		t.Fatal(err)
	}
	if again := decode(t, out.String()); string(again) != string(data) {
		t.Errorf("written back as\n%s\nwant\n%s", again, data)
	}
	if doc.APIVersion != v1alpha1.APIVersion || doc.Kind != v1alpha1.KindSysctl {
		t.Errorf("header %+v", doc.Header)
	}
}

// decode returns the one document of a stream as JSON.
func decode(t *testing.T, text string) []byte {
	t.Helper()
	stream, err := document.Decode("x", strings.NewReader(text))
	if err != nil || len(stream.Errors) > 0 || len(stream.Documents) != 1 {
		t.Fatalf("stream %+v, %v", stream, err)
	}
	data, err := stream.Documents[0].JSON()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestEmptyFieldsAreLeftOut, so that older plugins still read what a newer release writes.
func TestEmptyFieldsAreLeftOut(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(v1alpha1.Sysctl{Header: v1alpha1.Header{APIVersion: "a", Kind: "k", Metadata: v1alpha1.Metadata{Name: "n"}}})
	if want := `{"apiVersion":"a","kind":"k","metadata":{"name":"n"},"spec":{}}`; err != nil || string(data) != want {
		t.Errorf("written as %s, %v", data, err)
	}
}

func TestParseSysctlKey(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]v1alpha1.SysctlKey{
		"net.ipv4.ip_forward":                 "net/ipv4/ip_forward",
		"net/ipv4/ip_forward":                 "net/ipv4/ip_forward",
		"net.ipv4.conf.eth0/100.rp_filter":    "net/ipv4/conf/eth0.100/rp_filter",
		"net/ipv4/conf/eth0.100/rp_filter":    "net/ipv4/conf/eth0.100/rp_filter",
		"net/ipv4/conf/a.b.c/rp_filter":       "net/ipv4/conf/a.b.c/rp_filter",
		"kernel.panic":                        "kernel/panic",
		"net.ipv4.conf.br-lan.rp_filter":      "net/ipv4/conf/br-lan/rp_filter",
		"net.ipv4.conf.\u00e9th0/1.rp_filter": "net/ipv4/conf/\u00e9th0.1/rp_filter",
	} {
		got, err := v1alpha1.ParseSysctlKey(text)
		if err != nil || got != want {
			t.Errorf("v1alpha1.ParseSysctlKey(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestParseSysctlKeyRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                       "empty segment",
		".":                      "empty segment",
		"net..ipv4":              "empty segment",
		".net.ipv4":              "empty segment",
		"/net/ipv4":              "empty segment",
		"net.ipv4.":              "empty segment",
		"net//ipv4":              "empty segment",
		"net/../kernel/panic":    "segments . and ..",
		"net/./ipv4":             "segments . and ..",
		"net.ipv4.//.x":          "segments . and ..", // interchanged: net/ipv4/../x
		"net.ipv4./.x":           "segments . and ..",
		"kernel.panic\n":         "control characters",
		"kernel.\x00panic":       "control characters",
		"kernel.\x7fpanic":       "control characters",
		"kernel.\u0085panic":     "control characters",
		"kernel panic":           "white space",
		"kernel.\u00a0panic":     "white space",
		"kernel.panic=1":         "= sign",
		"net.ipv4.conf.*.x":      "wildcards",
		"net.ipv4.conf.[ab].x":   "wildcards",
		"net.ipv4.conf.eth?.x":   "wildcards",
		"-kernel.panic":          "does not begin",
		"#kernel.panic":          "does not begin",
		";kernel.panic":          "does not begin",
		"panic":                  "two segments",
		strings.Repeat("a", 300): "two segments",
	} {
		key, err := v1alpha1.ParseSysctlKey(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("v1alpha1.ParseSysctlKey(%q) = %q, %v; want an error with %q", text, key, err, want)
		}
	}
}

func TestSysctlKeyString(t *testing.T) {
	t.Parallel()
	for key, want := range map[v1alpha1.SysctlKey]string{
		"net/ipv4/ip_forward":              "net.ipv4.ip_forward",
		"net/ipv4/conf/eth0.100/rp_filter": "net.ipv4.conf.eth0/100.rp_filter",
	} {
		if got := key.String(); got != want {
			t.Errorf("%q.String() = %q, want %q", string(key), got, want)
		}
		if back, err := v1alpha1.ParseSysctlKey(key.String()); err != nil || back != key {
			t.Errorf("%q is not the result of parsing %q: %q, %v", string(key), key.String(), back, err)
		}
	}
}
