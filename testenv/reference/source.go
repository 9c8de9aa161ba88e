// Package reference writes docs/reference/documents.md out of the source of the contract: the doc comments and tags of
// the structs that documents are read into. A kind appears by itself when its struct is there.
//
// It lives in testenv, not in contract: its tests hold the page against the host and the plugins, which only testenv may
// see, and nothing of it is shipped.
package reference

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

// Source is what the packages of the contract declare, by package and name, such as v1alpha1.Sysctl.
type Source struct {
	structs map[string]*ast.StructType
	docs    map[string]string
	// values are the types that are no struct, or read themselves: what they are underneath.
	values map[string]ast.Expr
	// aliases are the names of other types, with rules of their own.
	aliases map[string]ast.Expr
	// markers are the rules of structs and aliases.
	markers map[string][]string
	// err has the markers that are not understood.
	err error
	// enums are the constants of a type, in the order of the source.
	enums map[string][]constant
	kinds []string
	// about is the documentation of each package.
	about map[string]string
}

type constant struct{ value, doc string }

// Read reads packages from their directories. The first holds the kinds: the constants Kind... and, of the same name as
// their values, the structs.
func Read(dirs ...string) (*Source, error) {
	s := &Source{
		structs: map[string]*ast.StructType{}, docs: map[string]string{}, values: map[string]ast.Expr{},
		aliases: map[string]ast.Expr{}, markers: map[string][]string{},
		enums: map[string][]constant{}, about: map[string]string{},
	}
	for i, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return nil, err
		}
		fset := token.NewFileSet()
		var trees []*ast.File
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			tree, err := parser.ParseFile(fset, file, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, fmt.Errorf("read a Go file: %w", err)
			}
			trees = append(trees, tree)
		}
		if len(trees) == 0 {
			return nil, fmt.Errorf("%s holds no Go file", dir)
		}
		for _, tree := range trees {
			if tree.Doc != nil {
				s.about[tree.Name.Name] += tree.Doc.Text()
			}
			s.read(tree, i == 0)
		}
		s.readingThemselves(trees)
	}
	return s, nil
}

func (s *Source) read(tree *ast.File, kinds bool) {
	pkg := tree.Name.Name
	for _, decl := range tree.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				name := pkg + "." + spec.Name.Name
				s.docs[name], s.markers[name] = text(spec.Doc, group.Doc), markers(spec.Doc, group.Doc)
				if structure, ok := spec.Type.(*ast.StructType); ok {
					s.structs[name] = structure
				} else if spec.Assign.IsValid() {
					s.aliases[name] = spec.Type
				} else {
					s.values[name] = spec.Type
				}
			case *ast.ValueSpec:
				if group.Tok == token.CONST {
					s.constants(pkg, spec, kinds)
				}
			}
		}
	}
}

func (s *Source) constants(pkg string, spec *ast.ValueSpec, kinds bool) {
	for i, name := range spec.Names {
		if i >= len(spec.Values) {
			return
		}
		literal, ok := spec.Values[i].(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			continue
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			continue
		}
		if of, ok := spec.Type.(*ast.Ident); ok {
			name := pkg + "." + of.Name
			s.enums[name] = append(s.enums[name], constant{value, text(spec.Doc, spec.Comment)})
		} else if rest, ok := strings.CutPrefix(name.Name, "Kind"); ok && kinds && rest == value {
			s.kinds = append(s.kinds, value)
		}
	}
}

// readingThemselves are structs that are no mapping of their fields in a document.
func (s *Source) readingThemselves(trees []*ast.File) {
	for _, tree := range trees {
		for _, decl := range tree.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || fn.Name.Name != "UnmarshalJSON" && fn.Name.Name != "UnmarshalText" {
				continue
			}
			of := fn.Recv.List[0].Type
			if star, ok := of.(*ast.StarExpr); ok {
				of = star.X
			}
			if ident, ok := of.(*ast.Ident); ok {
				name := tree.Name.Name + "." + ident.Name
				if structure, ok := s.structs[name]; ok {
					delete(s.structs, name)
					s.values[name] = structure
				}
			}
		}
	}
}

// text returns the first comment, without its markers.
func text(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		var lines []string
		for line := range strings.Lines(g.Text()) {
			if !strings.HasPrefix(line, markerPrefix) {
				lines = append(lines, line)
			}
		}
		if t := strings.TrimSpace(strings.Join(lines, "")); t != "" {
			return t
		}
	}
	return ""
}

// Kinds are the kinds that have a struct, and those that are only named yet.
func (s *Source) Kinds(pkg string) (written, named []string) {
	for _, kind := range s.kinds {
		if _, ok := s.structs[pkg+"."+kind]; ok {
			written = append(written, kind)
		} else {
			named = append(named, kind)
		}
	}
	return written, named
}

// Field is one field of a document, at any depth.
type Field struct {
	Path     string // spec.servers[].address
	Type     string // in words
	Value    string // the name of the type, when its values are described elsewhere
	Required bool
	Default  string
	Secret   bool
	About    string
}

// Fields are the fields of a struct and of what it holds, in the order of the source. Embedded structs that are left out
// have their fields described elsewhere.
func (s *Source) Fields(name, prefix string, without ...string) []Field {
	return s.fields(name, prefix, without, nil)
}

func (s *Source) fields(name, prefix string, without, inside []string) []Field {
	structure, ok := s.structs[name]
	if !ok {
		return nil
	}
	for _, outer := range inside {
		if outer == name { // it holds itself: its fields were described one level up
			return nil
		}
	}
	inside = append(inside, name)
	pkg, _, _ := strings.Cut(name, ".")
	var out []Field
	for _, f := range structure.Fields.List {
		tag, omitted, inline := jsonTag(f)
		of := qualified(pkg, f.Type)
		if inline {
			if !contains(without, of) {
				out = append(out, s.fields(of, prefix, without, inside)...)
			}
			continue
		}
		if tag == "" {
			continue
		}
		field := Field{Path: prefix + tag, Required: !omitted}
		about := text(f.Doc, f.Comment)
		if len(f.Names) > 0 {
			about = unnamed(f.Names[0].Name, about)
		}
		field.About, field.Default = divide(about)
		below := s.describe(&field, pkg, f.Type)
		out = append(out, field)
		if below != "" {
			out = append(out, s.fields(below, nested(field.Path, f.Type), without, inside)...)
		}
	}
	return out
}

// jsonTag is the name of a field in a document; inline says that its own fields stand in its place.
func jsonTag(f *ast.Field) (name string, omitted, inline bool) {
	tag := ""
	if f.Tag != nil {
		if unquoted, err := strconv.Unquote(f.Tag.Value); err == nil {
			tag = reflect.StructTag(unquoted).Get("json")
		}
	}
	name, options, _ := strings.Cut(tag, ",")
	switch {
	case name == "-":
		return "", false, false
	case len(f.Names) == 0 && name == "":
		return "", false, true
	case name == "" && ast.IsExported(f.Names[0].Name):
		name = f.Names[0].Name
	}
	return name, strings.Contains(options, "omit"), false
}

// nested is the path of what stands inside a field: of the elements of a list, of the values of a mapping.
func nested(at string, t ast.Expr) string {
	switch t := t.(type) {
	case *ast.ArrayType:
		return nested(at+"[]", t.Elt)
	case *ast.MapType:
		return nested(at+".KEY", t.Value)
	case *ast.StarExpr:
		return nested(at, t.X)
	}
	return at + "."
}

// qualified is the name of a type with its package.
func qualified(pkg string, t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return qualified(pkg, t.X)
	case *ast.Ident:
		return pkg + "." + t.Name
	case *ast.SelectorExpr:
		if x, ok := t.X.(*ast.Ident); ok {
			return path.Base(x.Name) + "." + t.Sel.Name
		}
	}
	return ""
}

func contains(all []string, one string) bool {
	for _, a := range all {
		if a == one {
			return true
		}
	}
	return false
}

// synopsis is the first sentence of a comment.
func synopsis(comment string) string { return new(doc.Package).Synopsis(comment) }
