package reference

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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
