package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/machineadm/machineadm/host/cmd/machineadm/cli"
)

const root = "../../../.."

func TestPageHasEveryCommandAndFlag(t *testing.T) {
	t.Parallel()
	tree := cli.NewRoot(nil, io.Discard, io.Discard)
	got := string(page(tree))
	seen := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if sub.Name() != "help" && sub.Name() != shells && !sub.Hidden {
				walk(sub)
			}
		}
		if c.HasAvailableSubCommands() && c.HasParent() {
			return
		}
		section := got // of the command itself: all of the page, whose flags stand at its end
		if c.HasParent() {
			_, after, found := strings.Cut(got, "\n## "+c.CommandPath()+"\n")
			if !found {
				t.Errorf("%s has no section", c.CommandPath())
			}
			section, _, _ = strings.Cut(after, "\n## ")
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if seen++; f.Name != "help" && !strings.Contains(section, "--"+f.Name) {
				t.Errorf("%s does not show --%s", c.CommandPath(), f.Name)
			}
		})
	}
	walk(tree)
	if seen < 25 {
		t.Errorf("%d flags were looked for: nothing was compared", seen)
	}
	for _, line := range []string{"| `--timeout DURATION` | `1h` |", "machineadm completion bash|fish|powershell|zsh", "| `-o, --output FORMAT` | `text` |"} {
		if !strings.Contains(got, line) {
			t.Errorf("the page has no %q", line)
		}
	}
}

// TestEveryExitCodeIsExplained, and in the order and with the meaning that contract/report gives it.
func TestEveryExitCodeIsExplained(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), root+"/contract/report/report.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Exit") {
			want = append(want, spec.Values[0].(*ast.BasicLit).Value) //nolint:errcheck // a panic is a failure here
		}
		return true
	})
	var got []string
	for _, f := range exits() {
		got = append(got, f.name)
	}
	if !slices.Equal(got, want) || len(want) < 11 {
		t.Errorf("codes %q, want %q", got, want)
	}
}

// TestEveryVariableIsExplained: whatever the product asks its environment for, by a literal name.
func TestEveryVariableIsExplained(t *testing.T) {
	t.Parallel()
	asked := map[string]bool{}
	for _, dir := range []string{"host", "contract/pluginv1", "sdk/machine"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if fun, ok := n.Fun.(*ast.SelectorExpr); ok && (fun.Sel.Name == "Getenv" || fun.Sel.Name == "LookupEnv") {
						note(asked, n.Args)
					}
				case *ast.RangeStmt: // for _, name := range []string{...} { lookup(name) }
					list, ok := n.X.(*ast.CompositeLit)
					if ok && calls(n.Body, "lookup", "LookupEnv", "Getenv") {
						note(asked, list.Elts)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var explained []string
	for _, f := range environment() {
		explained = append(explained, strings.Split(f.name, ", ")...)
	}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if !slices.Contains(explained, name) {
			t.Errorf("the variable %s is looked at and not explained", name)
		}
	}
	if len(asked) < 10 {
		t.Errorf("%d variables are looked at: nothing was compared", len(asked))
	}
}

// note keeps the literals.
func note(into map[string]bool, all []ast.Expr) {
	for _, e := range all {
		if literal, ok := e.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if name, err := strconv.Unquote(literal.Value); err == nil {
				into[name] = true
			}
		}
	}
}

func calls(body ast.Node, names ...string) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			switch fun := call.Fun.(type) {
			case *ast.Ident:
				found = found || slices.Contains(names, fun.Name)
			case *ast.SelectorExpr:
				found = found || slices.Contains(names, fun.Sel.Name)
			}
		}
		return true
	})
	return found
}

func TestManualSaysWhatTheTreeDoesNotKnow(t *testing.T) {
	t.Parallel()
	page := pages(t)["machineadm.8"]
	for _, want := range []string{".SH EXIT STATUS", ".SH ENVIRONMENT", ".SH FILES", `\fB10\fP`, `\fBNO_COLOR\fP`, "report.json"} {
		if strings.Count(page, want) != 1 {
			t.Errorf("machineadm.8 has %d times %q", strings.Count(page, want), want)
		}
	}
	if at := strings.Index(page, ".SH SEE ALSO"); at < strings.Index(page, ".SH FILES") {
		t.Error("SEE ALSO is not the last section")
	}
}
