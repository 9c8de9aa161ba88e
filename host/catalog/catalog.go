// Package catalog finds the installed plugins and opens those that can be trusted.
package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/internal/trust"
)

// Options say where plugins are looked for.
type Options struct {
	// First are directories named by the user, in order; the first hit wins.
	First []string
	// Beside is the directory of the running program, searched after First; see Beside.
	Beside string
	// Fixed are the platform's directories. A name in two of them is an error.
	Fixed []string
	// Path is a PATH, whose absolute directories come last, if PluginsOnPath is set.
	Path          string
	PluginsOnPath bool
}

// Plugin is an installed plugin.
type Plugin struct {
	Binary string // without .exe
	Path   string
	// Shadows is the installed plugin of this name that is not used, because this one lies beside the program.
	Shadows string
}

// Catalog finds plugins. It keeps nothing: each call looks again.
type Catalog struct {
	first, fixed, path []string
	beside             string
}

// NotFoundError says that no directory has the file of a plugin or, with Kind, of any provider of a kind.
type NotFoundError struct {
	Kind        string
	File        string
	Directories []string
}

// Error names the file and where it was looked for.
func (e *NotFoundError) Error() string {
	what := "the file " + e.File + " is not installed"
	if e.Kind != "" {
		what = "no plugin for " + e.Kind + " is installed: there is no file " + e.File
	}
	if len(e.Directories) == 0 {
		return what + ": there are no directories to look in"
	}
	return what + " in any of " + strings.Join(e.Directories, ", ")
}

// DuplicateError says that two of the platform's directories have the file.
type DuplicateError struct{ Paths []string }

// Error names both.
func (e *DuplicateError) Error() string {
	return "installed more than once: " + strings.Join(e.Paths, " and ")
}

// New makes relative directories absolute.
func New(o Options) (*Catalog, error) {
	c := &Catalog{fixed: o.Fixed, beside: o.Beside}
	for _, dir := range o.First {
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("--plugin-dir: %w", err)
		}
		c.first = append(c.first, absolute)
	}
	if slices.Contains(c.first, c.beside) {
		c.beside = ""
	}
	if o.PluginsOnPath {
		for _, dir := range filepath.SplitList(o.Path) {
			if filepath.IsAbs(dir) { // an empty or relative entry means the working directory, which anyone may have chosen
				c.path = append(c.path, filepath.Clean(dir))
			}
		}
	}
	return c, nil
}

// Directories are searched in this order.
func (c *Catalog) Directories() []string {
	first := slices.Clone(c.first)
	if c.beside != "" {
		first = append(first, c.beside)
	}
	return slices.Concat(first, c.fixed, c.path)
}

// Find is the one plugin of this name. The errors are *NotFoundError, *DuplicateError, that a directory cannot be
// looked into, or that this is no plugin's name: no path is made of such.
func (c *Catalog) Find(binary string) (Plugin, error) {
	file := naming.File(runtime.GOOS, binary)
	if !naming.IsPlugin(runtime.GOOS, file) {
		return Plugin{}, errors.New("look for plugins: this is not the name of a plugin")
	}
	for _, dir := range c.first {
		if found, err := has(dir, file); found || err != nil {
			return Plugin{Binary: binary, Path: filepath.Join(dir, file)}, err
		}
	}
	beside := ""
	if c.beside != "" {
		found, err := has(c.beside, file)
		if err != nil {
			return Plugin{}, err
		}
		if found {
			beside = filepath.Join(c.beside, file)
		}
	}
	var paths []string
	for _, dir := range c.fixed {
		found, err := has(dir, file)
		if err != nil {
			return Plugin{}, err
		}
		if found {
			paths = append(paths, filepath.Join(dir, file))
		}
	}
	if beside != "" {
		return Plugin{Binary: binary, Path: beside, Shadows: strings.Join(paths, " and ")}, nil
	}
	switch len(paths) {
	case 0:
	case 1:
		return Plugin{Binary: binary, Path: paths[0]}, nil
	default:
		return Plugin{}, &DuplicateError{Paths: paths}
	}
	for _, dir := range c.path {
		if found, err := has(dir, file); found || err != nil {
			return Plugin{Binary: binary, Path: filepath.Join(dir, file)}, err
		}
	}
	return Plugin{}, &NotFoundError{File: file, Directories: c.Directories()}
}

// has does not judge: an untrusted file, or a dangling link, is a hit, and an error later, never skipped.
func has(dir, file string) (bool, error) {
	_, err := os.Lstat(filepath.Join(dir, file))
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	default:
		return false, fmt.Errorf("look for plugins: %w", err)
	}
}

// List is every installed plugin, sorted by name, and what is wrong with the rest.
func (c *Catalog) List() ([]Plugin, []error) {
	return c.list(func(string) bool { return true })
}

// ByType is every installed provider of a kind, sorted by name; none is a *NotFoundError. A problem with one of them is an
// error: choosing among the others would hide it.
func (c *Catalog) ByType(kind string) ([]Plugin, error) {
	plugins, problems := c.list(func(binary string) bool {
		provider, ok := strings.CutPrefix(binary, naming.Prefix(kind))
		return ok && binary == naming.Binary(kind, provider)
	})
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	if len(plugins) == 0 {
		file := naming.File(runtime.GOOS, naming.Prefix(kind)+"PROVIDER")
		return nil, &NotFoundError{Kind: kind, File: file, Directories: c.Directories()}
	}
	return plugins, nil
}

func (c *Catalog) list(wanted func(binary string) bool) (plugins []Plugin, problems []error) {
	names := map[string]bool{}
	for _, dir := range c.Directories() {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, fmt.Errorf("look for plugins: %w", err))
		}
		for _, e := range entries {
			if binary, ok := naming.Trim(runtime.GOOS, e.Name()); ok && wanted(binary) {
				names[binary] = true
			}
		}
	}
	for _, binary := range slices.Sorted(maps.Keys(names)) {
		p, err := c.Find(binary)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		plugins = append(plugins, p)
	}
	return plugins, problems
}

// Open opens a plugin if it can be trusted; a refusal is a *trust.Error.
func (c *Catalog) Open(p Plugin) (*os.File, error) { return trust.Open(p.Path, trust.Program()) }

// Digest is the SHA-256 of an open file, in hex. The file's offset is not used.
func Digest(file *os.File) (string, error) {
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(file, 0, info.Size())); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
