// Command size measures the Go code below directories: files, packages, lines, and the median and the 90th percentile of
// lines per file and per function. make size runs it for the product.
//
//	size [-without PATTERN,...] DIR...    one line for all directories together
//	size -cycles [PACKAGE...]             the packages whose files use each other in cycles; needs their build
//
// Tests, generated files, vendor, testdata and directories that begin with a dot or an underscore do not count. A pattern
// leaves out the directories whose path below DIR, or last element, it matches as path.Match does.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	without := flag.String("without", "", "patterns of directories to leave out, joined by commas")
	listCycles := flag.Bool("cycles", false, "list the cycles between the files of packages")
	flag.Parse()
	if err := run(*listCycles, strings.Split(*without, ","), flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}

func run(listCycles bool, without, args []string) error {
	if listCycles {
		lines, err := cycles(args)
		for _, line := range lines {
			fmt.Println(line)
		}
		return err
	}
	var s sizes
	for _, dir := range args {
		if err := s.add(dir, without); err != nil {
			return err
		}
	}
	fmt.Println(s)
	return nil
}

// sizes are the lines of each file and of each function.
type sizes struct {
	packages         map[string]bool
	files, functions []int
}

func (s sizes) String() string {
	total := 0
	for _, n := range s.files {
		total += n
	}
	return fmt.Sprintf("%d lines, %d files in %d packages, %d functions; lines per file median %d p90 %d, per function median %d p90 %d",
		total, len(s.files), len(s.packages), len(s.functions),
		quantile(s.files, 50), quantile(s.files, 90), quantile(s.functions, 50), quantile(s.functions, 90))
}

// quantile returns the smallest value that at least percent of all values do not exceed.
func quantile(values []int, percent int) int {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

func (s *sizes) add(root string, without []string) error {
	return filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if below != "." && isLeftOut(filepath.ToSlash(below), without) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		return s.addFile(name)
	})
}

func isLeftOut(below string, without []string) bool {
	last := path.Base(below)
	if last == "vendor" || last == "testdata" || strings.HasPrefix(last, ".") || strings.HasPrefix(last, "_") {
		return true
	}
	return slices.ContainsFunc(without, func(pattern string) bool {
		whole, _ := path.Match(pattern, below)
		element, _ := path.Match(pattern, last)
		return whole || element
	})
}

func (s *sizes) addFile(name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if ast.IsGenerated(tree) {
		return nil
	}
	if s.packages == nil {
		s.packages = map[string]bool{}
	}
	s.packages[filepath.Dir(name)] = true
	s.files = append(s.files, bytes.Count(data, []byte("\n")))
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			s.functions = append(s.functions, set.Position(f.End()).Line-set.Position(f.Pos()).Line+1)
		}
	}
	return nil
}
