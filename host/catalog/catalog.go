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

// Options are the directories of plugins.
type Options struct {
	// First are directories given by the operator; the first hit wins.
	First []string
	// Beside is the directory of the running program, or empty; see the function Beside.
	Beside string
	// Fixed are the platform's directories. A file name in two of them is an error.
	Fixed []string
	// Path is a PATH, whose absolute directories are searched last if PluginsOnPath is set.
	Path          string
	PluginsOnPath bool
}

// Plugin is an installed plugin.
type Plugin struct {
	Binary string // without .exe
	Path   string
	// Shadows is the path of the installed plugin that this one, in the directory of the program, replaces.
	Shadows string
}

// Catalog finds plugins. It caches nothing.
type Catalog struct {
	first, beside, fixed, path []string
}

// NotFoundError reports that no directory has the file of a plugin or, with Kind, of any provider of the kind.
type NotFoundError struct {
	Kind        string
	File        string
	Directories []string
}

// Error returns the file and the searched directories.
func (e *NotFoundError) Error() string {
	what := "the file " + e.File + " is not installed"
	if e.Kind != "" {
		what = "no plugin for " + e.Kind + " is installed: there is no file " + e.File
	}
	if len(e.Directories) == 0 {
		return what + ": there are no plugin directories"
	}
	return what + " in any of " + strings.Join(e.Directories, ", ")
}

// DuplicateError reports a file in several of the platform's directories.
type DuplicateError struct{ Paths []string }

// Error returns the paths.
func (e *DuplicateError) Error() string {
	return "installed more than once: " + strings.Join(e.Paths, " and ")
}

// New returns a catalog of these directories, made absolute.
func New(o Options) (*Catalog, error) {
	c := &Catalog{fixed: o.Fixed}
	for _, dir := range o.First {
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("--plugin-dir: %w", err)
		}
		c.first = append(c.first, absolute)
	}
	if o.Beside != "" && !slices.Contains(c.first, o.Beside) {
		c.beside = []string{o.Beside}
	}
	if o.PluginsOnPath {
		for _, dir := range filepath.SplitList(o.Path) {
			if filepath.IsAbs(dir) { // an empty or relative entry depends on the working directory
				c.path = append(c.path, filepath.Clean(dir))
			}
		}
	}
	return c, nil
}

// Directories returns all directories in search order.
func (c *Catalog) Directories() []string { return slices.Concat(c.first, c.beside, c.fixed, c.path) }

// Find returns the plugin of this name. The error is a *NotFoundError, a *DuplicateError, a failed search, or an invalid
// name, which is never joined to a path.
func (c *Catalog) Find(binary string) (Plugin, error) {
	file := naming.File(runtime.GOOS, binary)
	if !naming.IsPlugin(runtime.GOOS, file) {
		return Plugin{}, errors.New("search for plugins: invalid plugin name")
	}
	if found, err := hits(c.first, file, 1); err != nil || len(found) > 0 {
		return Plugin{Binary: binary, Path: strings.Join(found, "")}, err
	}
	beside, err := hits(c.beside, file, 1)
	if err != nil {
		return Plugin{}, err
	}
	found, err := hits(c.fixed, file, len(c.fixed))
	switch {
	case err != nil:
		return Plugin{}, err
	case len(beside) > 0:
		return Plugin{Binary: binary, Path: beside[0], Shadows: strings.Join(found, " and ")}, nil
	case len(found) > 1:
		return Plugin{}, &DuplicateError{Paths: found}
	case len(found) == 0:
		if found, err = hits(c.path, file, 1); err != nil {
			return Plugin{}, err
		}
	}
	if len(found) == 0 {
		return Plugin{}, &NotFoundError{File: file, Directories: c.Directories()}
	}
	return Plugin{Binary: binary, Path: found[0]}, nil
}

// hits returns the paths of file in dirs, at most limit. It checks no trust: an untrusted file or a dangling link is a hit
// that Open refuses, never skipped.
func hits(dirs []string, file string, limit int) (paths []string, err error) {
	for _, dir := range dirs {
		path := filepath.Join(dir, file)
		if _, err := os.Lstat(path); err == nil {
			paths = append(paths, path)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("search for plugins: %w", err)
		}
		if len(paths) == limit {
			break
		}
	}
	return paths, nil
}

// List returns the installed plugins, sorted by name, and the errors of the others.
func (c *Catalog) List() ([]Plugin, []error) {
	return c.list(func(string) bool { return true })
}

// ByType returns the installed providers of a kind, sorted by name; if there is none, a *NotFoundError. A problem with one of
// them is an error, because a choice among the others would hide it.
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

func (c *Catalog) list(accept func(binary string) bool) (plugins []Plugin, problems []error) {
	names := map[string]bool{}
	for _, dir := range c.Directories() {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, fmt.Errorf("search for plugins: %w", err))
		}
		for _, e := range entries {
			if binary, ok := naming.Trim(runtime.GOOS, e.Name()); ok && accept(binary) {
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

// Open opens a plugin and checks its trust; an untrusted plugin is a *trust.Error.
func (c *Catalog) Open(p Plugin) (*os.File, error) { return trust.Open(p.Path, trust.Program()) }

// Digest returns the SHA-256 of an open file, in hex, and leaves the file's offset unchanged.
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
