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
