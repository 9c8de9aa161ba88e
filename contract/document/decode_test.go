package document

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/machineadm/machineadm/contract/target"
)

func TestDecodeEnvelope(t *testing.T) {
	t.Parallel()
	d := one(t, `# a comment
%YAML 1.2
---
apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: Timesync
metadata: {name: site-time.example, timeout: 1h30m, when: {os: [linux], distributions: [debian, opensuse-leap], architectures: [amd64]}}
spec: {provider: chronyd, servers: [{address: ntp1.example.com, iburst: true}], providerConfig: {}}
`)
	want := target.Selector{
		OS: []string{"linux"}, Distributions: []string{"debian", "opensuse-leap"}, Architectures: []string{"amd64"},
	}
	if d.APIVersion != "machineadm.cluster.x-k8s.io/v1alpha1" || d.Kind != "Timesync" || d.Name != "site-time.example" ||
		d.Provider != "chronyd" || d.Timeout != 90*time.Minute || fmt.Sprint(d.When) != fmt.Sprint(want) {
		t.Errorf("got %q %q %q %q %v %v", d.APIVersion, d.Kind, d.Name, d.Provider, d.Timeout, d.When)
	}
	if d.Index != 0 || d.Position != (Position{4, 1}) {
		t.Errorf("index %d, position %v", d.Index, d.Position)
	}
	const text = `{"apiVersion":"machineadm.cluster.x-k8s.io/v1alpha1","kind":"Timesync","metadata":{"name":"site-time.example",` +
		`"timeout":"1h30m","when":{"os":["linux"],"distributions":["debian","opensuse-leap"],"architectures":["amd64"]}},` +
		`"spec":{"provider":"chronyd","servers":[{"address":"ntp1.example.com","iburst":true}],"providerConfig":{}}}`
	if got := jsonOf(t, d); got != text {
		t.Errorf("got %s", got)
	}
}

func TestDecodeLeftOut(t *testing.T) {
	t.Parallel()
	d := one(t, "apiVersion: v1\nkind: A\nmetadata: {name: a, timeout: null, when: }\nspec: {provider: ~}\n")
	if d.Timeout != 0 || d.Provider != "" || len(d.When.OS) != 0 {
		t.Errorf("null must count as left out: %v %q %v", d.Timeout, d.Provider, d.When)
	}
}

func TestDecodeEnvelopeFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"everything missing": {"x: 1\n", []string{
			"1:1 x: unknown field", "1:1 apiVersion: is required", "1:1 kind: is required", "1:1 metadata: is required", "1:1 spec: is required",
		}},
		"null is missing": {"apiVersion:\nkind: ~\nmetadata: null\nspec:\n", []string{
			"1:1 apiVersion: is required", "2:1 kind: is required", "3:1 metadata: is required", "4:1 spec: is required",
		}},
		"name missing": {"apiVersion: v1\nkind: A\nmetadata:\n  timeout: 1s\nspec: {}\n", []string{"3:1 metadata.name: is required"}},
		"no strings": {"apiVersion: 1\nkind: true\nmetadata:\n  name: 7\n  timeout: 300\nspec:\n  provider: [a]\n", []string{
			"1:1 apiVersion: must be a string", "2:1 kind: must be CamelCase: a capital letter, then letters and digits, at most 63 characters",
			"4:3 metadata.name: must be a string", "5:3 metadata.timeout: must be a duration above zero", "7:3 spec.provider: must be a string",
		}},
		"no mappings": {"apiVersion: v1\nkind: A\nmetadata: []\nspec: x\n", []string{
			"3:1 metadata: must be a mapping", "4:1 spec: must be a mapping",
		}},
		"not valid": {"apiVersion: a/b/c\nkind: widget\nmetadata:\n  name: A.b\n  timeout: 0s\nspec:\n  provider: -a\n", []string{
			"1:1 apiVersion: must be a group, which is a DNS subdomain, a slash and a version",
			"2:1 kind: must be CamelCase: a capital letter, then letters and digits, at most 63 characters",
			"4:3 metadata.name: must be a DNS subdomain: labels of a-z, 0-9 and - joined by dots, each beginning and ending with a letter or digit, at most 63 characters a label and 253 altogether",
			"5:3 metadata.timeout: must be a duration above zero",
			"7:3 spec.provider: must consist of a-z, 0-9 and -, begin and end with a letter or digit, and have at most 63 characters",
		}},
		"when": {"apiVersion: v1\nkind: A\nmetadata:\n  name: a\n  when:\n    os: linux\n    distribution: [debian]\n    architectures:\n    - amd64\n    - X86\n    - 5\nspec: {}\n", []string{
			"6:5 metadata.when.os: must be a list", "7:5 metadata.when.distribution: unknown field",
			"10:7 metadata.when.architectures[1]: is not the GOARCH name of an architecture",
			"11:7 metadata.when.architectures[2]: must be a string",
		}},
		"when is no mapping": {"apiVersion: v1\nkind: A\nmetadata: {name: a, when: []}\nspec: {}\n", []string{"3:21 metadata.when: must be a mapping"}},
		"unknown fields":     {head + "  labels: {}\nSpec: {}\nspec: {}\n", []string{"5:3 metadata.labels: is a field of an object in a cluster, not of a document", "6:1 Spec: unknown field"}},
		"no mapping at all":  {"- a\n- b\n", []string{"1:1 : is a list, not a document"}},
		"text":               {"hello\nthere\n", []string{"1:1 : is text, not a document"}},
		"explicit null":      {"--- null\n", []string{"1:5 : must be a mapping"}},
		"empty text":         {"--- ''\n", []string{"1:5 : is text, not a document"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stream := decode(t, c.text)
			got := brief(stream.Errors)
			if name == "everything missing" { // all at one place: the order says nothing
				got, c.want = sorted(got), sorted(c.want)
			}
			expect(t, got, c.want)
			if len(stream.Documents) != 0 {
				t.Error("the document is good all the same")
			}
		})
	}
}

func TestDecodeHints(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		head + "  tiemout: 5m\nspec: {}\n":   "did you mean timeout?",
		head + "spec: {}\napiversion: x\n":   "did you mean apiVersion?",
		head + "sepc: {}\nspec: {}\n":        "did you mean spec?",
		head + "something: {}\nspec: {}\n":   "remove it, or use one of: apiVersion, kind, metadata, spec",
		withSpec("mode: 0640"):               "put it in quotes if it is text, such as a file mode; otherwise write a plain decimal number",
		head + "spec:\n\ta: b\n":             "indent with spaces",
		head + "spec: {a: [1, 2}\n":          "close the list with ], or put the value in quotes",
		head + "spec:\n  a: @b\n":            "put the value in quotes",
		head + "  when: {oss: []}\nspec: {}": "did you mean os?",
	} {
		stream := decode(t, text)
		if len(stream.Errors) != 1 || stream.Errors[0].Hint != want {
			t.Errorf("%q: got %v, want the hint %q", text, stream.Errors, want)
		}
	}
}

func TestDecodeNames(t *testing.T) {
	t.Parallel()
	doc := func(kind, name, spec string) string {
		return "---\napiVersion: v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
	}
	stream := decode(t, doc("A", "x", "{}")+doc("B", "x", "{}")+doc("A", "y", "{}")+doc("A", "x", "{}")+doc("A", "x", "{}"))
	expect(t, brief(stream.Errors), []string{
		"19:12 metadata.name: duplicates the name of the A on line 4", "24:12 metadata.name: duplicates the name of the A on line 4",
	})
	if len(stream.Documents) != 3 {
		t.Errorf("got %d documents, want 3", len(stream.Documents))
	}
	// A document with faults has taken its name as well.
	stream = decode(t, doc("A", "x", "[]")+doc("A", "x", "{}"))
	expect(t, brief(stream.Errors), []string{"5:1 spec: must be a mapping", "9:12 metadata.name: duplicates the name of the A on line 4"})
}

// Of duplicates the first names the document.
func TestDecodeDuplicateHeader(t *testing.T) {
	t.Parallel()
	stream := decode(t, "apiVersion: v1\nkind: A\nkind: B\nmetadata: {name: a, name: b}\nspec: {}\n")
	expect(t, brief(stream.Errors), []string{
		"3:1 kind: duplicate key, first on line 2", "4:21 metadata.name: duplicate key, first on line 4",
	})
	for _, e := range stream.Errors {
		if e.Kind != "A" || e.Name != "a" {
			t.Errorf("the document is called %s/%s", e.Kind, e.Name)
		}
	}
}

func TestDecodeIndex(t *testing.T) {
	t.Parallel()
	stream := decode(t, "---\n# nothing\n---\n"+withSpec("a: 1")+"---\n...\n---\na: b: c\n---\n"+strings.Replace(withSpec("a: 1"), "site", "other", 1))
	if len(stream.Errors) != 1 || stream.Errors[0].Index != 1 || stream.Errors[0].Position != (Position{13, 5}) {
		t.Fatalf("got %v", stream.Errors)
	}
	if len(stream.Documents) != 2 || stream.Documents[0].Index != 0 || stream.Documents[1].Index != 2 {
		t.Fatalf("documents: %v", stream.Documents)
	}
	if got := stream.Documents[1].Position; got != (Position{15, 1}) {
		t.Errorf("the last document is at %v", got)
	}
}

func TestDecodeReadError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	stream, err := Decode("f", io.MultiReader(strings.NewReader(head), iotest.ErrReader(broken)))
	if stream != nil || !errors.Is(err, broken) {
		t.Errorf("got %v, %v", stream, err)
	}
}

// counter counts what was read of an endless stream.
type counter struct{ n int }

func (c *counter) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '#'
	}
	c.n += len(p)
	return len(p), nil
}

func TestDecodeStreamFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"empty":         {"", "f.yaml: contains no document"},
		"comments":      {"# a\n---\n# b\n...\n\n", "f.yaml: contains no document"},
		"UTF-16 LE":     {"\xFF\xFEa\x00:\x00", "f.yaml: is UTF-16 or UTF-32, or not text"},
		"UTF-16 BE":     {"\xFE\xFF\x00a\x00:", "f.yaml: is UTF-16 or UTF-32, or not text"},
		"UTF-16 no BOM": {"a\x00:\x00 \x00b\x00", "f.yaml: is UTF-16 or UTF-32, or not text"},
		"too many": {
			strings.Repeat("---\na\n", MaxDocuments+1),
			"f.yaml: reading ended on line 2001: the stream has too many errors",
		},
	} {
		stream := decode(t, c.text)
		last := stream.Errors[len(stream.Errors)-1]
		if last.Index != -1 || !strings.HasPrefix(last.Error(), c.want+"\n  hint: ") {
			t.Errorf("%s: got %v", name, last)
		}
	}
	endless := &counter{}
	stream, err := Decode("", endless)
	if err != nil || len(stream.Errors) != 1 || stream.Errors[0].Error() != "is larger than 16 MiB\n  hint: split it, or remove large files from it" {
		t.Errorf("endless: %v %v", stream, err)
	}
	if endless.n > 2*MaxStreamBytes {
		t.Errorf("read %d bytes of an endless stream", endless.n)
	}
}

func TestDecodeTooManyDocuments(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range MaxDocuments + 1 {
		if i == MaxDocuments {
			text.WriteString("# not yet\n")
		}
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: A\nmetadata: {name: n%d}\nspec: {}\n", i)
	}
	stream := decode(t, text.String())
	if len(stream.Documents) != MaxDocuments {
		t.Errorf("got %d documents", len(stream.Documents))
	}
	expect(t, brief(stream.Errors), []string{"0:0 : has more than 10000 documents: reading ended on line 50002"})
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]Error{
		"f:3:4: Sysctl/node: spec.a: is wrong\n  hint: correct it": {
			File: "f", Kind: "Sysctl", Name: "node", Field: "spec.a", Position: Position{3, 4}, Message: "is wrong", Hint: "correct it",
		},
		"line 3:4: document 2: is wrong": {Index: 1, Name: "ignored", Position: Position{3, 4}, Message: "is wrong"},
		"f: Sysctl: is wrong":            {File: "f", Kind: "Sysctl", Message: "is wrong"},
		"is wrong":                       {Index: -1, Message: "is wrong"},
		"f: " + strings.Repeat("é", 256) + "…: is wrong": {File: "f", Index: -1, Field: strings.Repeat("é", 400), Message: "is wrong"},
	} {
		if got := e.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestDecodeMany(t *testing.T) {
	t.Parallel()
	stream := decode(t, withSpec(strings.Repeat("a: *x\n", 5*MaxErrors)))
	if n := len(stream.Errors); n < MaxErrors || n > MaxErrors+1 {
		t.Errorf("got %d errors", n)
	}
	if last := stream.Errors[0]; last.Message != "has more errors than are listed" {
		t.Errorf("the first of the document is %v", last)
	}
}

// TestTimeoutWithoutAUnit: a number and a quoted one are the same mistake.
func TestTimeoutWithoutAUnit(t *testing.T) {
	t.Parallel()
	for _, timeout := range []string{"5", `"5"`} {
		s := decode(t, "apiVersion: v1\nkind: A\nmetadata: {name: a, timeout: "+timeout+"}\nspec: {}\n")
		if len(s.Errors) != 1 || s.Errors[0].Hint != "write a number with its unit, such as 90s, 5m or 1h30m" {
			t.Errorf("%s: %v", timeout, s.Errors)
		}
	}
}
