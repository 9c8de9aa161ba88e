package suite

import (
	"errors"
	"fmt"
	"go/build"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/internal/require"
)

// Module is the path of the checkout's module.
const Module = "github.com/machineadm/machineadm"

// Package is a Go package of the checkout, or a nested module, that has tests.
type Package struct {
	Dir        string // below the root of the checkout, with slashes
	Tiers      []require.TierName
	Kubernetes bool // links the libraries of Kubernetes
	Concurrent bool // its code starts goroutines or shares memory: for the race detector
	Nested     bool // a module of its own
	Whole      bool // all of it is of its tier, by its mark
	Alone      bool
	First      bool
	Core       []string // patterns of -test.run, such as ^TestDeb$/^trixie$
	VM         []string // test functions that emulate machines
}

// Testenv reports whether the package tests programs, not itself: its results are not cached by go test.
func (p Package) Testenv() bool { return strings.HasPrefix(p.Dir, "testenv/") }

// Path is the import path, which go test prints.
func (p Package) Path() string { return Module + "/" + p.Dir }

func (p Package) in(tier require.TierName) bool { return slices.Contains(p.Tiers, tier) }

// Load reads the packages with tests of the checkout at root, sorted. It compiles and downloads nothing.
func Load(root string) ([]Package, error) {
	sources, err := read(root)
	if err != nil {
		return nil, err
	}
	var all []Package
	for _, dir := range slices.Sorted(maps.Keys(sources)) {
		if s := sources[dir]; s.tests {
			all = append(all, sources.classify(dir, s))
		}
	}
	return all, nil
}

// source is what the files of one directory say.
type source struct {
	tests, nested, concurrent, alone, first bool
	imports                                 []string           // of the package
	testImports                             []string           // of its tests
	tiers                                   []require.TierName // named by the package, which concern what imports it too
	testTiers                               []require.TierName // named by its tests
	only                                    require.TierName   // of the package as a whole, by its mark
	core, vm                                []string
}

type sources map[string]source

func read(root string) (sources, error) {
	all := sources{}
	err := filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		dir, err := filepath.Rel(root, at)
		if err != nil {
			return err
		}
		dir = filepath.ToSlash(dir)
		if name := d.Name(); dir != "." && (strings.HasPrefix(name, ".") || name == "testdata" || dir == "bin" || dir == "dist") {
			return fs.SkipDir
		}
		s, err := readDir(at)
		if err != nil {
			return fmt.Errorf("read the package %s: %w", dir, err)
		}
		if _, err := os.Stat(filepath.Join(at, "go.mod")); dir != "." && err == nil {
			s.nested = true
			if s.tests, err = hasTests(at); err != nil {
				return err
			}
			all[dir] = s
			return fs.SkipDir
		}
		all[dir] = s
		return nil
	})
	return all, err
}

func readDir(dir string) (source, error) {
	var s source
	p, err := build.Default.ImportDir(dir, 0)
	var none *build.NoGoError
	if err != nil && !errors.As(err, &none) {
		return s, err
	}
	s.imports, s.testImports = p.Imports, slices.Concat(p.TestImports, p.XTestImports)
	s.tests = len(p.TestGoFiles)+len(p.XTestGoFiles) > 0
	for _, name := range p.GoFiles {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return s, err
		}
		s.concurrent = s.concurrent || startsGoroutines.Match(text)
		s.tiers = append(s.tiers, tiersOf(text)...)
	}
	for _, name := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return s, err
		}
		s.testTiers = append(s.testTiers, tiersOf(text)...)
		s.marks(string(text))
	}
	return s, nil
}

// hasTests reports whether a nested module has tests in any of its packages.
func hasTests(dir string) (found bool, err error) {
	err = filepath.WalkDir(dir, func(at string, _ fs.DirEntry, err error) error {
		found = found || strings.HasSuffix(at, "_test.go")
		return err
	})
	return found, err
}

var (
	startsGoroutines = regexp.MustCompile(`(?m)^\s*go [[:alpha:]]|\.Go\(|\bsync\.|\batomic\.`)
	namesTier        = regexp.MustCompile(`\.(?:Tier|Runs)\(.*\.(Controller|System|Cluster|VM)\)|(tools\.For)\(`)
	testFunction     = regexp.MustCompile(`^func (Test\w+)\(`)
	needsVM          = regexp.MustCompile(`\.Tier\(.*\.VM\)`)
)

// tiersOf are the tiers that a file names. What takes a tool is of the tier system at least.
func tiersOf(text []byte) []require.TierName {
	var tiers []require.TierName
	for _, m := range namesTier.FindAllStringSubmatch(string(text), -1) {
		name := strings.ToLower(m[1])
		if m[2] != "" {
			name = string(require.System)
		}
		tiers = append(tiers, require.TierName(name))
	}
	return tiers
}

// marks reads the comments and the calls that concern single tests.
func (s *source) marks(text string) {
	var marked []string
	function := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "//machineadm:alone" {
			s.alone = true
		}
		if line == "//machineadm:first" {
			s.first = true
		}
		if tier, ok := strings.CutPrefix(line, "//machineadm:tier "); ok {
			s.only = require.TierName(tier)
		}
		if mark, ok := strings.CutPrefix(line, "//machineadm:core"); ok {
			marked = append(marked, strings.TrimSpace(mark))
			continue
		}
		if m := testFunction.FindStringSubmatch(line); m != nil {
			function = m[1]
			for _, subtest := range marked {
				pattern := "^" + function + "$"
				if subtest != "" {
					pattern += "/^" + subtest + "$"
				}
				s.core = append(s.core, pattern)
			}
			marked = nil
		}
		if needsVM.MatchString(line) && function != "" && !slices.Contains(s.vm, function) {
			s.vm = append(s.vm, function)
		}
	}
}

// classify follows the imports of a package and of its tests within the module.
func (all sources) classify(dir string, s source) Package {
	p := Package{Dir: dir, Concurrent: s.concurrent, Nested: s.nested, Alone: s.alone, First: s.first, Core: s.core, VM: s.vm}
	if s.only != "" {
		p.Tiers, p.VM, p.Whole = []require.TierName{s.only}, nil, true
		return p
	}
	tiers := slices.Concat(s.tiers, s.testTiers)
	if !s.nested {
		seen := map[string]bool{}
		all.follow(slices.Concat(s.imports, s.testImports), seen, &p, &tiers)
	}
	if p.Kubernetes && !slices.Contains(tiers, require.Cluster) {
		tiers = append(tiers, require.Controller)
	}
	// What boots virtual machines boots containers as well: only a package that names the tier itself is of it.
	if len(s.vm) == 0 {
		tiers = slices.DeleteFunc(tiers, func(t require.TierName) bool { return t == require.VM })
	}
	slices.Sort(tiers)
	p.Tiers = slices.Compact(tiers)
	return p
}

func (all sources) follow(imports []string, seen map[string]bool, p *Package, tiers *[]require.TierName) {
	for _, to := range imports {
		if strings.HasPrefix(to, "sigs.k8s.io/") || strings.HasPrefix(to, "k8s.io/") && !strings.HasPrefix(to, "k8s.io/cri-api") {
			p.Kubernetes = true
		}
		dir, ok := strings.CutPrefix(to, Module+"/")
		if !ok || seen[dir] {
			continue
		}
		seen[dir] = true
		s := all[dir]
		*tiers = append(*tiers, s.tiers...)
		all.follow(s.imports, seen, p, tiers)
	}
}
