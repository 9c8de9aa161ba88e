package reference

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/tools"
)

const root = "../.."

func source(t *testing.T) *Source {
	t.Helper()
	s, err := Read(Directories(root)...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPageIsUpToDate(t *testing.T) {
	t.Parallel()
	got, err := Page(source(t), root)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(root + "/docs/reference/documents.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/reference/documents.md is not what the source says: make generate")
	}
}

// TestEveryFieldIsExplained: of a field without a comment the page would say nothing.
func TestEveryFieldIsExplained(t *testing.T) {
	t.Parallel()
	s := source(t)
	written, _ := s.Kinds(kindsPackage)
	if len(written) == 0 {
		t.Fatal("no kind is found")
	}
	for _, kind := range written {
		fields := s.Fields(kindsPackage+"."+kind, "", headerType)
		if len(fields) < 2 || s.purpose(kind) == "" {
			t.Errorf("%s has %d fields and the purpose %q", kind, len(fields), s.purpose(kind))
		}
		for _, f := range append(fields, s.Fields(headerType, "")...) {
			if f.About == "" || f.Type == "" {
				t.Errorf("%s: %s has no comment or no type: %+v", kind, f.Path, f)
			}
		}
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	s, err := Read("testdata/kinds")
	if err != nil {
		t.Fatal(err)
	}
	written, named := s.Kinds("kinds")
	if fmt.Sprint(written, named) != "[Lamp] [ToCome]" {
		t.Errorf("kinds %v, to come %v", written, named)
	}
	var got strings.Builder
	for _, f := range s.Fields("kinds.Lamp", "", "kinds.Header") {
		fmt.Fprintf(&got, "%s | %s | required %t | secret %t | %s | %s\n", f.Path, f.Type, f.Required, f.Secret, f.Default, f.About)
	}
	const want = `spec | mapping | required true | secret false |  | Says which light.
spec.provider | string | required false | secret false |  | Makes the light.
spec.bulbs | list of mappings | required true | secret false | one of 60 W | What shines, at least one. Each has a place of its own, as in lamps(5).
spec.bulbs[].place | string | required true | secret false |  | Where it is.
spec.bulbs[].behind | list of mappings | required false | secret false |  | Bulbs behind it.
spec.colors | mapping of names to Color | required false | secret false |  | Maps a place to a color.
spec.password | secret | required false | secret true |  | Opens the socket.
spec.keys | list of secrets | required false | secret true |  | More of them.
spec.dimmed | boolean | required false | secret false | Left out, the socket decides | Says whether it is dimmed.
spec.level | integer | required false | secret false |  | How bright it is.
spec.ratio | number | required false | secret false |  | Ratio of light and shade.
spec.extra | anything | required false | secret false |  | Read by the socket alone.
spec.far | Thing | required false | secret false |  | Comes from another package.
spec.names | mapping of names to lists of strings | required false | secret false |  | Names of names.
`
	if got.String() != want {
		t.Errorf("fields\n%s\nwant\n%s", &got, want)
	}
	var page bytes.Buffer
	s.valueTypes(&page, map[string]bool{"kinds.Color": true, "kinds.Secret": true, "": true})
	for _, line := range []string{"### Color", "Color is a color of light.", "- `red`: Red is warm.", "- `blue`: Blue is cold.", "### Secret"} {
		if !strings.Contains(page.String(), line+"\n") {
			t.Errorf("the page of values has no %q:\n%s", line, &page)
		}
	}
}

// TestEveryKindHasAnExampleThatIsRight: it is decoded into the struct itself, strictly, and the host and the plugins of
// this repository find nothing wrong with it.
func TestEveryKindHasAnExampleThatIsRight(t *testing.T) {
	t.Parallel()
	written, _ := source(t).Kinds(kindsPackage)
	var shown []string
	for _, kind := range written {
		file := ExampleFile(root, kind)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("write an example of the kind: %v", err)
			continue
		}
		shown = append(shown, kind)
		stream, err := document.Decode(file, bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range stream.Errors {
			t.Error(e)
		}
		if len(stream.Documents) == 0 || stream.Documents[0].Kind != kind {
			t.Errorf("%s does not begin with a %s", file, kind)
		}
	}
	all, err := filepath.Glob(filepath.Join(root, "docs/reference", Examples, "*"))
	if err != nil || len(all) != len(shown) {
		t.Errorf("%d files are among the examples, %d are of kinds (%v)", len(all), len(shown), err)
	}
	decodeStrictly(t, shown)
	validate(t, shown)
}

// decodeStrictly has a program read each example into its struct: the kinds are known from the source, and here no table
// of them has to be kept.
func decodeStrictly(t *testing.T, kinds []string) {
	t.Helper()
	var cases strings.Builder
	for _, kind := range kinds {
		fmt.Fprintf(&cases, "case %q:\nreturn &v1alpha1.%s{}\n", kind, kind)
	}
	program, err := format.Source([]byte(`package main
import ("bytes"; "fmt"; "os"; "github.com/machineadm/machineadm/contract/document"; "github.com/machineadm/machineadm/contract/v1alpha1")
func of(kind string) any { switch kind { ` + "\n" + cases.String() + `}; return nil }
func main() { for _, file := range os.Args[1:] {
	data, err := os.ReadFile(file); if err != nil { panic(err) }
	stream, err := document.Decode(file, bytes.NewReader(data)); if err != nil { panic(err) }
	for _, d := range stream.Documents {
		json, err := d.JSON(); if err != nil { panic(err) }
		for _, v := range document.Unmarshal(json, of(d.Kind)) { fmt.Println(file, d.Kind, v) }
		fmt.Println("read", d.Kind)
	} } }
`))
	if err != nil {
		t.Fatal(err)
	}
	main := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(main, program, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", main}
	for _, kind := range kinds {
		args = append(args, ExampleFile(".", kind))
	}
	c := exec.CommandContext(t.Context(), "go", args...)
	c.Dir = root
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "read ") {
			t.Error(line)
		}
	}
	if strings.Count(string(out), "read ") < len(kinds) {
		t.Errorf("not every example was read:\n%s", out)
	}
}

// built has the binaries of the checkout.
func built(t *testing.T) string {
	t.Helper()
	require.Linux(t)
	bin := t.TempDir()
	if err := tools.All(t.Context(), bin); err != nil {
		t.Fatal(err)
	}
	return bin
}

// validateStream runs the real command on a private file: in a checkout, others may be able to write.
func validateStream(t *testing.T, bin, name string, stream []byte) {
	t.Helper()
	private := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(private, stream, 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), filepath.Join(bin, "machineadm"), "validate", "--plugin-dir", bin, "--path", private)
	if out, err := c.CombinedOutput(); err != nil || c.ProcessState.ExitCode() != report.ExitOK {
		t.Errorf("%s: %v\n%s", name, err, out)
	}
}

// validate runs the real command. A kind that no plugin of this repository serves yet is only decoded.
func validate(t *testing.T, kinds []string) {
	t.Helper()
	bin := built(t)
	validated := 0
	for _, kind := range kinds {
		plugins, err := filepath.Glob(filepath.Join(bin, naming.Prefix(kind)+"*"))
		if err != nil {
			t.Fatal(err)
		}
		if len(plugins) == 0 {
			t.Logf("no plugin here serves %s yet: its example is only decoded", kind)
			continue
		}
		data, err := os.ReadFile(ExampleFile(root, kind))
		if err != nil {
			t.Fatal(err)
		}
		validateStream(t, bin, kind+".yaml", data)
		validated++
	}
	if validated == 0 {
		t.Error("no example was validated")
	}
}
