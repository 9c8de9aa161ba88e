package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// pkg is what the go command says of a package.
type pkg struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly                 bool
}

// cycles returns a line for each group of files of a package that use each other's identifiers in a cycle.
func cycles(patterns []string) (lines []string, err error) {
	packages, err := list(patterns)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	set, imports := compiled(exports)
	for _, p := range packages {
		if p.DepOnly {
			continue
		}
		graph, err := p.graph(set, imports)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.ImportPath, err)
		}
		for _, group := range groups(graph) {
			lines = append(lines, p.ImportPath+": "+strings.Join(group, " "))
		}
	}
	return lines, nil
}

// compiled reads imported packages from their export data, which are files by import path.
func compiled(exports map[string]string) (*token.FileSet, types.Importer) {
	set := token.NewFileSet()
	return set, importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
}

func list(patterns []string) ([]pkg, error) {
	args := append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,DepOnly"}, patterns...)
	cmd := exec.CommandContext(context.Background(), "go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// graph maps each file of the package to the files whose identifiers it uses: functions, types, methods, fields, constants
// and variables that are not local.
func (p pkg) graph(set *token.FileSet, imports types.Importer) (map[string][]string, error) {
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	checked, err := (&types.Config{Importer: imports}).Check(p.ImportPath, set, files, info)
	if err != nil {
		return nil, err
	}
	uses := map[string]map[string]bool{}
	for ident, object := range info.Uses {
		from, to := filepath.Base(set.Position(ident.Pos()).Filename), filepath.Base(set.Position(object.Pos()).Filename)
		if object.Pkg() != checked || from == to {
			continue
		}
		if uses[from] == nil {
			uses[from] = map[string]bool{}
		}
		uses[from][to] = true
	}
	graph := map[string][]string{}
	for from, to := range uses {
		graph[from] = slices.Sorted(maps.Keys(to))
	}
	return graph, nil
}

// groups returns the files that reach each other, each group sorted.
func groups(graph map[string][]string) [][]string {
	var out [][]string
	done := map[string]bool{}
	for _, from := range slices.Sorted(maps.Keys(graph)) {
		if done[from] {
			continue
		}
		group := []string{from}
		for to := range reachable(graph, from) {
			if to != from && reachable(graph, to)[from] {
				group = append(group, to)
			}
		}
		for _, file := range group {
			done[file] = true
		}
		if len(group) > 1 {
			slices.Sort(group)
			out = append(out, group)
		}
	}
	return out
}

func reachable(graph map[string][]string, from string) map[string]bool {
	seen, next := map[string]bool{}, slices.Clone(graph[from])
	for len(next) > 0 {
		file := next[0]
		next = next[1:]
		if !seen[file] {
			seen[file] = true
			next = append(next, graph[file]...)
		}
	}
	return seen
}
