package texts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// source is one package of the product as it is built for one platform.
type source struct {
	path  string
	files []*ast.File
	info  *types.Info
}

// listed is what the go command says of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles, IgnoredGoFiles []string
	DepOnly                 bool
}

// platforms are those that the product is built for, and one more for the files that say that it is not.
func platforms() []string { return []string{"linux", "windows", "darwin"} }

// load parses and type-checks the packages for one platform, in the order of their imports, so that a variable is the
// same object in every package that names it. Foreign packages come from what the compiler exports for Linux: on another
// platform a foreign type can be missing, which leaves a hole where no text stands.
func load(packages []listed, goos string) ([]*source, error) {
	fset := token.NewFileSet()
	exports := map[string]string{}
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	foreign := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		file, ok := exports[path]
		if !ok || file == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(file)
	})
	ours := local{foreign: foreign, checked: map[string]*types.Package{}}
	var sources []*source
	for _, p := range packages {
		if p.DepOnly {
			continue
		}
		s, err := check(fset, ours, p, goos)
		if err != nil {
			return nil, err
		}
		if s != nil {
			sources = append(sources, s)
		}
	}
	return sources, nil
}

// list asks the go command, for Linux: what it says of the files of other platforms is under IgnoredGoFiles.
func list(ctx context.Context, dir string, patterns []string) ([]listed, error) {
	args := []string{"list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,IgnoredGoFiles,DepOnly"}
	cmd := exec.CommandContext(ctx, "go", append(args, patterns...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOWORK=off")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, &complaint)
	}
	var all []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		all = append(all, p)
	}
}

// check parses and type-checks one package. It is nil when the platform builds none of its files.
func check(fset *token.FileSet, ours local, p listed, goos string) (*source, error) {
	s := &source{path: p.ImportPath, info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
		Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
	}}
	platform := build.Default
	platform.GOOS, platform.GOARCH, platform.CgoEnabled = goos, "amd64", false
	for _, name := range slices.Sorted(slices.Values(slices.Concat(p.GoFiles, p.IgnoredGoFiles))) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if ok, err := platform.MatchFile(p.Dir, name); err != nil {
			return nil, fmt.Errorf("read a Go file: %w", err)
		} else if !ok {
			continue
		}
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("read a Go file: %w", err)
		}
		if !ast.IsGenerated(file) {
			s.files = append(s.files, file)
		}
	}
	if len(s.files) == 0 {
		return nil, nil //nolint:nilnil // a package for other platforms
	}
	var wrong []error
	config := types.Config{Importer: ours, Error: func(err error) { wrong = append(wrong, err) }}
	checked, _ := config.Check(p.ImportPath, fset, s.files, s.info) // what is wrong is in wrong
	ours.checked[p.ImportPath] = checked
	if goos == "linux" && len(wrong) > 0 {
		return nil, fmt.Errorf("type-check %s: %w", p.ImportPath, errors.Join(wrong...))
	}
	return s, nil
}

// local imports what was checked before, else what the compiler exported.
type local struct {
	foreign types.Importer
	checked map[string]*types.Package
}

// Import implements types.Importer.
func (l local) Import(path string) (*types.Package, error) {
	if p, ok := l.checked[path]; ok {
		return p, nil
	}
	return l.foreign.Import(path)
}
