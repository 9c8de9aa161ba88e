package texts

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

const (
	root   = "../.."
	golden = root + "/docs/reference/errors.md"
)

var update = flag.Bool("update", false, "write docs/reference/errors.md")

// TestProduct reads the product once for all that is asked of it.
func TestProduct(t *testing.T) {
	t.Parallel()
	all, err := Collect(t.Context(), root, Product()...)
	if err != nil {
		t.Fatal(err)
	}
	rooms := Shown(all)
	t.Run("the page is up to date", func(t *testing.T) { samePage(t, rooms) })
	t.Run("every text keeps the rules", func(t *testing.T) { keepsRules(t, rooms) })
	t.Run("no room is empty", func(t *testing.T) { isFull(t, rooms) })
	t.Run("no plain text is overlooked", func(t *testing.T) { hasPlainTexts(t, rooms) })
}

// samePage: a text that is new or gone shows in the page, which a person reads before it is renewed.
func samePage(t *testing.T, rooms []Room) {
	t.Helper()
	got := Page(rooms)
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil { //nolint:gosec // documentation
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the texts are others than %s says: read the new ones as prose, then make generate\n%s", golden,
			differences(string(want), string(got)))
	}
}

// differences are the lines that only one of two pages has.
func differences(want, got string) string {
	old, now := strings.Split(want, "\n"), strings.Split(got, "\n")
	var out []string
	for _, line := range now {
		if !slices.Contains(old, line) {
			out = append(out, "new:  "+line)
		}
	}
	for _, line := range old {
		if !slices.Contains(now, line) {
			out = append(out, "gone: "+line)
		}
	}
	return strings.Join(out, "\n")
}

func keepsRules(t *testing.T, rooms []Room) {
	t.Helper()
	for _, r := range rooms {
		for _, text := range r.Texts {
			for _, wrong := range Judge(text) {
				t.Errorf("%s: %q (hint %q): %s", name(r), text.Text, text.Hint, wrong)
			}
		}
	}
}

// isFull: a collector that has lost its way finds little.
func isFull(t *testing.T, rooms []Room) {
	t.Helper()
	count, hints := map[string]int{}, 0
	for _, r := range rooms {
		for _, text := range r.Texts {
			if count[name(r)]++; text.Hint != "" || text.Role == Hint {
				hints++
			}
		}
	}
	for room, floor := range map[string]int{
		"contract/conformance": 15, "contract/document": 90, "contract/naming": 3, "contract/pluginv1": 25,
		"contract/target": 10, "host/catalog": 5, "host/cmd/machineadm/cli": 40, "host/journal": 25, "host/launch": 8,
		"host/run": 30, "internal/atomicfile": 15, "internal/proctree": 15, "internal/trust": 12,
		"plugins/sysctl/procfs": 30, "sdk": 45, "sdk/machine": 60,
	} {
		if count[room] < floor {
			t.Errorf("%s has %d texts, at least %d are expected: lower the floor if they are gone", room, count[room], floor)
		}
	}
	if hints < 130 {
		t.Errorf("%d hints are found, at least 130 are expected", hints)
	}
}

// hasPlainTexts asks a simpler reader: whatever errors.New and fmt.Errorf are given in so many words is found, in the
// files of every platform.
func hasPlainTexts(t *testing.T, rooms []Room) {
	t.Helper()
	found := map[string][]string{}
	for _, r := range rooms {
		for _, text := range r.Texts {
			found[name(r)] = append(found[name(r)], text.Text)
		}
	}
	literals := 0
	for _, top := range []string{"contract", "host", "internal", "plugins", "sdk"} {
		for file, texts := range plainLiterals(t, filepath.Join(root, top)) {
			room := filepath.ToSlash(filepath.Dir(file))
			for _, text := range texts {
				literals++
				if !slices.Contains(found[room], text) && strings.ContainsFunc(text, unicode.IsLetter) {
					t.Errorf("%s gives an error the text %q, which is not among the texts of %s", file, text, room)
				}
			}
		}
	}
	if literals < 250 {
		t.Errorf("%d plain texts are read: little was compared", literals)
	}
}

// plainLiterals are the literals that errors.New and fmt.Errorf are given, by file.
func plainLiterals(t *testing.T, dir string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		below, _ := filepath.Rel(root, path)
		if err != nil || entry.IsDir() && entry.Name() == "testdata" {
			return fs.SkipDir
		}
		inner := len(Shown([]Room{{Path: module + filepath.ToSlash(filepath.Dir(below))}})) == 0
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || inner {
			return nil
		}
		tree, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || ast.IsGenerated(tree) {
			return err
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			fun, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || fun.Sel.Name != "New" && fun.Sel.Name != "Errorf" || fmt.Sprint(fun.X) != "errors" && fmt.Sprint(fun.X) != "fmt" {
				return true
			}
			if literal, ok := call.Args[0].(*ast.BasicLit); ok {
				text, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				out[below] = append(out[below], regexp.MustCompile(`%(\[\d\])?[-+#0-9.]*[a-zA-Z]`).ReplaceAllString(
					strings.ReplaceAll(text, "%q", `"%q"`), "…"))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
