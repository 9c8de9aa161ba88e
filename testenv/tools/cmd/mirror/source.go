package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

// structure is a struct of the contract.
type structure struct {
	doc    string
	fields []field
}

// field is a field of a struct, or an embedded struct if it has no name.
type field struct {
	name, doc string
	// json is the JSON name; options are the rest of the tag.
	json, options string
	typ           ast.Expr
	// owner is the struct that declares the field, which differs from the one that has it if it is embedded.
	owner string
}

func (f field) optional() bool { return strings.Contains(f.options, "omit") }

// read returns the structs of a package, by name.
func read(directory string) (map[string]structure, error) {
	files, err := filepath.Glob(filepath.Join(directory, "*.go"))
	if err != nil {
		return nil, err
	}
	all := map[string]structure{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, declaration := range tree.Decls {
			group, ok := declaration.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range group.Specs {
				named, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				if body, ok := named.Type.(*ast.StructType); ok {
					all[named.Name.Name] = structure{doc: group.Doc.Text(), fields: fields(named.Name.Name, body)}
				}
			}
		}
	}
	return all, nil
}

func fields(owner string, body *ast.StructType) []field {
	var all []field
	for _, declared := range body.Fields.List {
		f := field{doc: declared.Doc.Text(), typ: declared.Type, owner: owner}
		if len(declared.Names) > 0 {
			f.name = declared.Names[0].Name
		}
		if declared.Tag != nil {
			tag, _ := strconv.Unquote(declared.Tag.Value) // the parser has checked it
			f.json, f.options, _ = strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		}
		all = append(all, f)
	}
	return all
}

// flat returns the fields of a struct with those of embedded structs in their place, and the names of all these structs.
func flat(source map[string]structure, name string) (all []field, owners []string, err error) {
	s, ok := source[name]
	if !ok {
		return nil, nil, fmt.Errorf("%s is not a struct of the contract", name)
	}
	owners = []string{name}
	for _, f := range s.fields {
		if f.name != "" {
			all = append(all, f)
			continue
		}
		inner, more, err := flat(source, base(f.typ))
		if err != nil {
			return nil, nil, err
		}
		all, owners = append(all, inner...), append(owners, more...)
	}
	return all, owners, nil
}

// base returns the name of the innermost type of a field.
func base(typ ast.Expr) string {
	switch typ := typ.(type) {
	case *ast.StarExpr:
		return base(typ.X)
	case *ast.ArrayType:
		return base(typ.Elt)
	case *ast.MapType:
		return base(typ.Value)
	case *ast.SelectorExpr:
		return typ.Sel.Name
	case *ast.Ident:
		return typ.Name
	}
	return ""
}
