package law

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	goalLines    = 300
	allowedLines = 400
	readAtMost   = 1 << 20
)

// File is one file of the checkout: its slash-separated path below the root, and its text, empty if it is none or larger than 1 MiB.
type File struct {
	Path string
	Data []byte
}

// Files reads every file of the checkout at root, except what git ignores by the rules of .gitignore.
func Files(root string) ([]File, error) {
	var all []File
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		below = filepath.ToSlash(below)
		if entry.IsDir() && slices.Contains(ignored(), below) {
			return filepath.SkipDir
		}
		if !entry.Type().IsRegular() || below == ".git" || below == "coverage.out" || strings.HasSuffix(below, ".test") {
			return nil
		}
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) { // a temporary file of another test
			return nil
		}
		if len(data) > readAtMost || bytes.IndexByte(data, 0) >= 0 {
			data = nil
		}
		all = append(all, File{Path: below, Data: data})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the checkout: %w", err)
	}
	return all, nil
}

// ignored are the directories of .gitignore, and git's own.
func ignored() []string {
	const plugin = "testenv/typescript/plugin/"
	return []string{".git", "bin", "dist", plugin + "build", plugin + "dist", plugin + "node_modules"}
}

// Source checks the size of one Go file, and that it has no init function. Generated files and test data are not checked.
func Source(f File) (breaches, warnings []string, err error) {
	if !isSource(f.Path) {
		return nil, nil, nil
	}
	tree, err := parser.ParseFile(token.NewFileSet(), f.Path, f.Data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, fmt.Errorf("read a Go file: %w", err)
	}
	if ast.IsGenerated(tree) {
		return nil, nil, nil
	}
	for _, d := range tree.Decls {
		function, ok := d.(*ast.FuncDecl)
		if !ok || function.Recv != nil || function.Name.Name != "init" {
			continue
		}
		if !strings.HasSuffix(f.Path, "_test.go") || !locksThread(function) {
			breaches = append(breaches, f.Path+": func init(): wire it by hand")
		}
	}
	lines := bytes.Count(f.Data, []byte("\n"))
	switch isTest := strings.HasSuffix(f.Path, "_test.go"); {
	case lines > allowedLines && !isTest:
		breaches = append(breaches, fmt.Sprintf("%s: %d lines, %d are allowed: divide it", f.Path, lines, allowedLines))
	case lines > goalLines:
		warnings = append(warnings, fmt.Sprintf("%s: %d lines, the goal is %d", f.Path, lines, goalLines))
	}
	return breaches, warnings, nil
}

// PackageComments returns the packages without a package comment. Generated packages need none.
func PackageComments(files []File) ([]string, error) {
	said := map[string]bool{}
	for _, f := range files {
		if !isSource(f.Path) || strings.HasSuffix(f.Path, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), f.Path, f.Data, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			return nil, fmt.Errorf("read a Go file: %w", err)
		}
		says := tree.Doc != nil && strings.TrimSpace(tree.Doc.Text()) != ""
		said[path.Dir(f.Path)] = said[path.Dir(f.Path)] || says || ast.IsGenerated(tree)
	}
	var breaches []string
	for dir, ok := range said {
		if !ok {
			breaches = append(breaches, dir+": has no package comment")
		}
	}
	slices.Sort(breaches)
	return breaches, nil
}

func isSource(name string) bool {
	return strings.HasSuffix(name, ".go") && !strings.Contains("/"+name, "/testdata/")
}

// Places returns the lines of a file that name a package registry or mirror (a test reads it from the machine's own
// configuration) or a directory of a development machine.
func Places(f File) []string {
	var breaches []string
	number := 0
	pattern := places()
	for line := range bytes.Lines(f.Data) {
		number++
		if found := pattern.FindSubmatch(line); found != nil {
			breaches = append(breaches, fmt.Sprintf("%s:%d: names %s", f.Path, number, found[1]))
		}
	}
	return breaches
}

// places is composed of halves, so that this file does not contain the names.
func places() *regexp.Regexp {
	halves := [][2]string{
		{"deb.debian", "org"},
		{"security.debian", "org"},
		{"ftp.debian", "org"},
		{"snapshot.debian", "org"},
		{"archive.ubuntu", "com"},
		{"security.ubuntu", "com"},
		{"ports.ubuntu", "com"},
		{"proxy.golang", "org"},
		{"sum.golang", "org"},
		{"goproxy", "io"},
		{"goproxy", "cn"},
		{"docker", "io"},
		{"download.docker", "com"},
		{"registry.k8s", "io"},
		{"pkgs.k8s", "io"},
		{"k8s.gcr", "io"},
		{"gcr", "io"},
		{"ghcr", "io"},
		{"quay", "io"},
		{"public.ecr", "aws"},
		{"mcr.microsoft", "com"},
		{"registry.npmjs", "org"},
		{"pypi", "org"},
		{"files.pythonhosted", "org"},
		{"registry.fedoraproject", "org"},
	}
	hosts := make([]string, 0, len(halves))
	for _, h := range halves {
		hosts = append(hosts, regexp.QuoteMeta(h[0]+"."+h[1]))
	}
	return regexp.MustCompile(`(?:^|[^A-Za-z0-9-])((?:[a-z0-9-]+\.)*(?:` + strings.Join(hosts, "|") + `)|/work/(?:main|shared|notes)|/root/(?:go|\.cache))(?:[^A-Za-z0-9-]|$)`)
}

// TopLevel returns the entries of the repository's top that do not belong there. Names that start with a dot are free.
func TopLevel(files []File) []string {
	allowed := []string{
		"contract", "sdk", "plugins", "host", "installer", "testenv", "internal", "docs", "examples",
		"go.mod", "go.sum", "Makefile", "README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md",
	}
	var strangers []string
	for _, f := range files {
		top, _, _ := strings.Cut(f.Path, "/")
		if !strings.HasPrefix(top, ".") && !slices.Contains(allowed, top) {
			strangers = append(strangers, top+": does not belong at the top of the repository")
		}
	}
	slices.Sort(strangers)
	return slices.Compact(strangers)
}

// locksThread reports whether an init function only keeps the main goroutine on the first thread, which only an
// init function can.
func locksThread(f *ast.FuncDecl) bool {
	if len(f.Body.List) != 1 {
		return false
	}
	statement, ok := f.Body.List[0].(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := statement.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == "LockOSThread"
}
