package conformance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFindingsAreComplete requires the clause, what was expected, what came, and the likely cause in every finding of the
// source: in its literal, by a later assignment in the same function, or from compare, which sets two of them.
func TestFindingsAreComplete(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	rooms, err := filepath.Glob("internal/*/*.go")
	require.NoError(t, err)
	count := 0
	for _, name := range append(files, rooms...) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, name, source, 0)
		require.NoError(t, err)
		for _, d := range file.Decls {
			function, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			for _, f := range findingsIn(function) {
				count++
				for _, part := range []string{"Clause", "Expected", "Got", "Cause"} {
					assert.True(t, f.parts[part], "%s: the finding has no %s", positions.Position(f.at), part)
				}
			}
		}
	}
	assert.Greater(t, count, 30)
}

type literal struct {
	at    token.Pos
	parts map[string]bool
}

// findingsIn returns every literal of a finding in a function, with the parts that the function sets.
func findingsIn(function *ast.FuncDecl) []literal {
	assigned, fromCompare := map[string]bool{}, map[ast.Node]bool{}
	variables := map[ast.Node]string{}
	ast.Inspect(function, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if selector, ok := left.(*ast.SelectorExpr); ok {
					if variable, ok := selector.X.(*ast.Ident); ok {
						assigned[variable.Name+"."+selector.Sel.Name] = true
					}
				}
				if name, ok := left.(*ast.Ident); ok && len(n.Lhs) == len(n.Rhs) {
					variables[n.Rhs[i]] = name.Name
				}
			}
		case *ast.CallExpr:
			if selector, ok := n.Fun.(*ast.SelectorExpr); ok && selector.Sel.Name == "Compare" {
				for _, argument := range n.Args {
					fromCompare[argument] = true
				}
			}
		}
		return true
	})
	var out []literal
	ast.Inspect(function, func(n ast.Node) bool {
		value, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		name, ok := value.Type.(*ast.Ident)
		if selector, qualified := value.Type.(*ast.SelectorExpr); qualified {
			name, ok = selector.Sel, true
		}
		if !ok || name.Name != "Finding" {
			return true
		}
		f := literal{at: value.Pos(), parts: map[string]bool{}}
		for _, element := range value.Elts {
			pair, ok := element.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			text, constant := pair.Value.(*ast.BasicLit)
			f.parts[pair.Key.(*ast.Ident).Name] = !constant || text.Value != `""` //nolint:errcheck // keys of a struct are identifiers
		}
		for _, part := range []string{"Clause", "Expected", "Got", "Cause"} {
			f.parts[part] = f.parts[part] || assigned[variables[n]+"."+part]
		}
		if fromCompare[n] {
			f.parts["Expected"], f.parts["Got"] = true, true
		}
		out = append(out, f)
		return true
	})
	return out
}
