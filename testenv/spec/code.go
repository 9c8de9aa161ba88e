package spec

import (
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	goparser "go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Source reads the Go files of the repository at Root, of every platform.
type Source struct{ Root string }

// TestFiles are the test files of a package.
func (s Source) TestFiles(pkg string) ([]TestFile, error) {
	files, err := s.files(pkg, "_test.go", true)
	if err != nil {
		return nil, err
	}
	var out []TestFile
	for _, tree := range files {
		f := TestFile{Functions: map[string]bool{}, Texts: map[string]bool{}}
		for _, d := range tree.Decls {
			function, ok := d.(*ast.FuncDecl)
			if ok && function.Recv == nil && isTest(function.Name.Name) {
				f.Functions[function.Name.Name] = true
			}
		}
		for _, text := range texts(tree) {
			f.Texts[text] = true
		}
		out = append(out, f)
	}
	return out, nil
}

// isTest reports whether go test runs a function of this name as a test. Benchmarks and TestMain verify nothing.
func isTest(name string) bool {
	for _, prefix := range []string{"Test", "Fuzz", "Example"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return name != "TestMain" && (rest == "" || rest[0] < 'a' || rest[0] > 'z')
		}
	}
	return false
}

// texts are the string literals below a node, in their order.
func texts(n ast.Node) []string {
	var out []string
	ast.Inspect(n, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil {
				out = append(out, text)
			}
		}
		return true
	})
	return out
}

// files parses the Go files of a package whose names end so; test selects test files.
func (s Source) files(pkg, suffix string, test bool) ([]*ast.File, error) {
	dir := filepath.Join(s.Root, filepath.FromSlash(pkg))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("there is no package %s", pkg)
	}
	var out []*ast.File
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) || strings.HasSuffix(e.Name(), "_test.go") != test {
			continue
		}
		tree, err := goparser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, goparser.ParseComments|goparser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", pkg, err)
		}
		out = append(out, tree)
	}
	return out, nil
}

// Constant is a constant of a package as its source has it.
type Constant struct {
	Name, Type, Value, Comment string
}

// Constants are the constants of a package that were given a value of their own, in the order of the files.
func (s Source) Constants(pkg string) ([]Constant, error) {
	files, err := s.files(pkg, ".go", false)
	if err != nil {
		return nil, err
	}
	var out []Constant
	for _, tree := range files {
		for _, d := range tree.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				value, ok := spec.(*ast.ValueSpec)
				if !ok || len(value.Values) != len(value.Names) {
					continue
				}
				for i, name := range value.Names {
					c := Constant{Name: name.Name, Value: types.ExprString(value.Values[i]), Comment: strings.TrimSpace(value.Comment.Text())}
					if value.Type != nil {
						c.Type = types.ExprString(value.Type)
					}
					out = append(out, c)
				}
			}
		}
	}
	return out, nil
}

// Number is the value of an integer or duration constant of a package, also one that is not exported.
func (s Source) Number(pkg, name string) (int64, error) {
	constants, err := s.Constants(pkg)
	if err != nil {
		return 0, err
	}
	at := slices.IndexFunc(constants, func(c Constant) bool { return c.Name == name })
	if at < 0 {
		return 0, fmt.Errorf("%s has no constant %s", pkg, name)
	}
	units := strings.NewReplacer("time.Second", strconv.FormatInt(int64(time.Second), 10), "time.Minute", strconv.FormatInt(int64(time.Minute), 10))
	value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, units.Replace(constants[at].Value))
	if err != nil {
		return 0, fmt.Errorf("%s.%s: %w", pkg, name, err)
	}
	if value.Value == nil || value.Value.Kind() != constant.Int {
		return 0, fmt.Errorf("%s.%s is not an integer", pkg, name)
	}
	number, exact := constant.Int64Val(value.Value)
	if !exact {
		return 0, fmt.Errorf("%s.%s is too large", pkg, name)
	}
	return number, nil
}

// Text is the first string literal in the constant or function of this name, in the files that end so.
func (s Source) Text(pkg, suffix, name string) (string, error) {
	files, err := s.files(pkg, suffix, false)
	if err != nil {
		return "", err
	}
	for _, tree := range files {
		for _, d := range tree.Decls {
			for _, node := range named(d, name) {
				if found := texts(node); len(found) > 0 {
					return found[0], nil
				}
			}
		}
	}
	return "", errors.New(pkg + " has no text in " + name + " of *" + suffix)
}

// named is the part of a declaration that declares name.
func named(d ast.Decl, name string) []ast.Node {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.Name == name {
			return []ast.Node{d.Body}
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if value, ok := spec.(*ast.ValueSpec); ok && value.Names[0].Name == name {
				return []ast.Node{value}
			}
		}
	}
	return nil
}
