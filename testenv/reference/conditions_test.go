package reference

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	conditionsPage   = root + "/docs/reference/conditions.md"
	conditionsSource = root + "/host/controller/api/bootstrap/v1alpha1/conditions.go"
)

// TestConditionsAreExplained: each condition and each reason of the API has a row, and each row is one of them.
func TestConditionsAreExplained(t *testing.T) {
	t.Parallel()
	constants := conditionConstants(t)
	var conditions, reasons []string
	for name, value := range constants {
		if strings.HasPrefix(name, "Reason") {
			reasons = append(reasons, value)
		} else {
			conditions = append(conditions, value)
		}
	}
	require.Greater(t, len(conditions), 5)
	require.Greater(t, len(reasons), 20)
	page, err := os.ReadFile(conditionsPage)
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(page), "\n## Conditions\n")
	first, second, _ := strings.Cut(text, "\n## Reasons\n")
	var explained []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| .+ \\|$").FindAllStringSubmatch(first, -1) {
		explained = append(explained, row[1])
	}
	assert.ElementsMatch(t, append(conditions, "Paused"), explained, "conditions, and Paused of Cluster API")
	explained = nil
	for _, row := range reasonRows(t, second) {
		explained = append(explained, row.reason)
	}
	slices.Sort(explained)
	assert.ElementsMatch(t, reasons, slices.Compact(explained), "reasons")
}

// TestReasonsAreThoseOfTheController: each combination of condition, status and reason in the code of the controller has its row.
func TestReasonsAreThoseOfTheController(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(conditionsPage)
	require.NoError(t, err)
	explained := map[string]bool{}
	for _, row := range reasonRows(t, string(page)) {
		for _, condition := range row.conditions {
			explained[row.reason+" "+row.status+" "+condition] = true
		}
	}
	found := controllerReasons(t, conditionConstants(t))
	require.Greater(t, len(found), 25, "little was checked")
	for _, one := range found {
		assert.True(t, explained[one], "%s has no row %s", conditionsPage, one)
	}
}

type reasonRow struct {
	reason, status string
	conditions     []string
}

func reasonRows(t *testing.T, page string) (rows []reasonRow) {
	t.Helper()
	for _, found := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (True|False|Unknown) \\| ([`\\w, ]+) \\| .+\\. \\| .+\\. \\|$").FindAllStringSubmatch(page, -1) {
		var conditions []string
		for _, c := range strings.Split(found[3], ", ") {
			conditions = append(conditions, strings.Trim(c, "`"))
		}
		rows = append(rows, reasonRow{found[1], found[2], conditions})
	}
	return rows
}

// conditionConstants are the constants of the API, by name.
func conditionConstants(t *testing.T) map[string]string {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), conditionsSource, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	all := map[string]string{}
	ast.Inspect(tree, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || regexp.MustCompile("^(Annotation|Finalizer)").MatchString(spec.Names[0].Name) {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		require.True(t, ok, spec.Names[0].Name)
		value, err := strconv.Unquote(literal.Value)
		require.NoError(t, err)
		all[spec.Names[0].Name] = value
		return true
	})
	return all
}

// controllerReasons finds the calls that set a condition, as REASON STATUS CONDITION. A call whose condition is a parameter is left
// out.
func controllerReasons(t *testing.T, constants map[string]string) (all []string) {
	t.Helper()
	files, err := filepath.Glob(root + "/host/controller/*.go")
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name, _ := call.Fun.(*ast.Ident)
			status := ""
			switch {
			case name == nil:
			case name.Name == "waiting":
				status = "Unknown"
			case name.Name == "invalid":
				status = "False"
			case name.Name == "reached":
				status = "True"
			case name.Name == "mark":
				status = strings.TrimPrefix(selected(call.Args[2]), "Condition")
			}
			if status == "" {
				return true
			}
			var condition, reason string
			for _, argument := range call.Args {
				switch name := selected(argument); {
				case strings.HasPrefix(name, "Reason"):
					reason = constants[name]
				case constants[name] != "":
					condition = constants[name]
				}
			}
			if condition != "" && reason != "" {
				all = append(all, reason+" "+status+" "+condition)
			}
			return true
		})
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// selected is the name behind the dot of an expression such as bootstrap.ReasonReady.
func selected(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return s.Sel.Name
	}
	return ""
}
