package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const gatesHeading = `# The feature gates of kubeadm, and of the components of Kubernetes, which share a list: whose, name, the first and the last minor
# version that has it, and for one that is locked the first version that locks it, and its value.
# Made by testenv/tools/cmd/fields from the modules of Kubernetes.
`

// gate is a feature gate over the releases.
type gate struct {
	first, last, locked int
	value               string
}

// gatePackages are the packages that declare feature gates, whose they are, and the module of each.
func gatePackages() [][3]string {
	return [][3]string{
		{"kubeadm", "kubernetes", "cmd/kubeadm/app/features"},
		{"component", "kubernetes", "pkg/features"},
		{"component", "apiserver", "pkg/features"},
		{"component", "apiextensions-apiserver", "pkg/features"},
		{"component", "client-go", "features"},
		{"component", "component-base", "logs/api/v1"},
		{"component", "component-base", "metrics/features"},
		{"component", "component-base", "zpages/features"},
		{"component", "controller-manager", "pkg/features"},
	}
}

func gates() error {
	all := map[string]*gate{}
	for _, r := range releases() {
		var packages [][]*ast.File
		names := map[string]string{} // of constants
		for _, p := range gatePackages() {
			version := r.version
			if p[1] == "kubernetes" {
				version = "v1" + strings.TrimPrefix(version, "v0")
			}
			files, err := parse(p[1], version, p[2])
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // a package of other releases
				return fmt.Errorf("%s of %s: %w", p[2], version, err)
			}
			packages = append(packages, files)
			for _, f := range files {
				constants(f, names)
			}
		}
		for i, p := range gatePackages() {
			for _, f := range packages[i] {
				found, err := specs(f, names, r.minor)
				for name, s := range found {
					err = errors.Join(err, note(all, p[0]+" "+name, s, r.minor))
				}
				if err != nil {
					return err
				}
			}
		}
	}
	fmt.Print(gatesHeading)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		g := all[name]
		line := fmt.Sprint(name, " ", g.first, " ", g.last)
		if g.value != "" {
			line += fmt.Sprint(" ", g.locked, " ", g.value)
		}
		fmt.Println(line)
	}
	return nil
}

// note adds what a release says of a gate, and refuses what a line of the table cannot express.
func note(all map[string]*gate, name string, s spec, minor int) error {
	g := all[name]
	if g == nil {
		g = &gate{first: minor, last: minor}
		all[name] = g
	}
	value := ""
	if s.locked {
		value = s.value
	}
	if minor > g.last+1 || g.value != "" && g.value != value {
		return fmt.Errorf("%s: 1.%d returns it, or changes its lock", name, minor)
	}
	if g.last, g.value = minor, value; value != "" {
		g.locked = cmp.Or(g.locked, minor)
	}
	return nil
}

// constants adds the texts of the constants of a file.
func constants(f *ast.File, names map[string]string) {
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if ok && len(v.Values) == 1 {
			value := v.Values[0]
			if conversion, ok := value.(*ast.CallExpr); ok && len(conversion.Args) == 1 {
				value = conversion.Args[0]
			}
			if text, ok := value.(*ast.BasicLit); ok {
				if name, err := strconv.Unquote(text.Value); err == nil {
					names[v.Names[0].Name] = name
				}
			}
		}
		return true
	})
}

// spec is the state of a gate in one release.
type spec struct {
	value  string // the default
	locked bool
}

// specs returns the gates of which the maps of a file have a FeatureSpec, or a list of them by version.
func specs(f *ast.File, names map[string]string, minor int) (map[string]spec, error) {
	all := map[string]spec{}
	var unknown error
	ast.Inspect(f, func(n ast.Node) bool {
		pair, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		key := pair.Key
		if selector, ok := key.(*ast.SelectorExpr); ok {
			key = selector.Sel
		}
		id, ok := key.(*ast.Ident)
		value, composite := pair.Value.(*ast.CompositeLit)
		if !ok || !composite {
			return true
		}
		for _, each := range append([]ast.Expr{value}, value.Elts...) {
			s, ok := specOf(each, minor)
			switch {
			case ok && names[id.Name] != "":
				all[names[id.Name]] = s
			case ok && id.Name != "FeatureSpec": // which kubeadm embeds
				unknown = fmt.Errorf("the name of %s in %s 1.%d is in none of the packages", id.Name, f.Name.Name, minor)
			}
		}
		return true
	})
	return all, unknown
}

// specOf reads a FeatureSpec. It is none of a later version than minor.
func specOf(e ast.Expr, minor int) (s spec, ok bool) {
	if pair, isPair := e.(*ast.KeyValueExpr); isPair { // the embedded FeatureSpec of kubeadm
		e = pair.Value
	}
	literal, isLiteral := e.(*ast.CompositeLit)
	if !isLiteral {
		return s, false
	}
	for _, element := range literal.Elts {
		pair, isPair := element.(*ast.KeyValueExpr)
		if !isPair {
			return s, false
		}
		switch v := pair.Value.(type) {
		case *ast.Ident:
			switch fmt.Sprint(pair.Key) {
			case "Default":
				s.value, ok = v.Name, true
			case "LockToDefault":
				s.locked = v.Name == "true"
			}
		case *ast.CallExpr: // version.MustParse("1.31")
			if text, isText := v.Args[0].(*ast.BasicLit); isText {
				since, err := strconv.Atoi(strings.TrimPrefix(strings.Trim(text.Value, `"`), "1."))
				if err == nil && since > minor {
					return spec{}, false
				}
			}
		}
	}
	return s, ok
}
