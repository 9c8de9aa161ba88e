package law

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
)

// Clients returns the places in the text of a Go file that make an HTTP client of their own, or use a global one of net/http, which
// follows redirects with the credentials and the URL of a request. internal/httpclient makes every client.
func Clients(file string, text []byte) ([]string, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	name := ""
	for _, i := range parsed.Imports {
		if path, _ := strconv.Unquote(i.Path.Value); path == "net/http" {
			if name = "http"; i.Name != nil {
				name = i.Name.Name
			}
		}
	}
	var all []string
	report := func(at ast.Node, what string) {
		all = append(all, fmt.Sprintf("%s: http.%s: use internal/httpclient", set.Position(at.Pos()), what))
	}
	member := func(n ast.Node) string {
		if s, ok := n.(*ast.SelectorExpr); ok && name != "" {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == name {
				return s.Sel.Name
			}
		}
		return ""
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if what := member(n.Type); what == "Client" || what == "Transport" {
				report(n, what+"{}")
			}
		case *ast.ValueSpec:
			if what := member(n.Type); what == "Client" || what == "Transport" {
				report(n, what)
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "new" && len(n.Args) == 1 {
				if what := member(n.Args[0]); what == "Client" || what == "Transport" {
					report(n, what)
				}
			}
		case *ast.SelectorExpr:
			switch what := member(n); what {
			case "DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm":
				report(n, what)
			}
		}
		return true
	})
	return all, nil
}
