package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/tomledit"
	"github.com/machineadm/machineadm/sdk"
)

// listImports is the list of the main file as it shall be: what is there, what the document asks for, and the own drop-in
// where nothing covers it yet. own is nil where there is none.
func listImports(m sdk.Machine, d mainDocument, asked []string, own func(list []string) (string, error)) ([]string, error) {
	list, err := importsOf(d.Document, d.path)
	if err != nil {
		return nil, err
	}
	if own == nil { // a containerd 2.x was here before
		list = slices.DeleteFunc(list, func(pattern string) bool {
			return pattern == dropInFile(m) || pattern == pathsOf(m.Target.OS).imports
		})
	}
	var front []string
	for _, pattern := range asked {
		if !slices.Contains(list, pattern) {
			front = append(front, pattern)
		}
	}
	list = append(front, list...)
	if own == nil {
		return list, nil
	}
	pattern, err := own(list)
	if err != nil || pattern == "" {
		return list, err
	}
	return append(list, pattern), nil
}

func importsOf(d *tomledit.Document, file string) ([]string, error) {
	value, ok := d.Get("imports")
	if !ok {
		return nil, nil
	}
	items, isList := value.([]any)
	var list []string
	for _, item := range items {
		text, isText := item.(string)
		isList = isList && isText
		list = append(list, text)
	}
	if !isList {
		return nil, sdk.Precondition(file+": imports is not a list of file names", "correct the file, then run again")
	}
	return list, nil
}

// setImports writes the list, and takes a key away that is ours and has become empty.
func setImports(d mainDocument, list []string) error {
	now, err := importsOf(d.Document, d.path)
	switch {
	case err != nil:
		return err
	case slices.Equal(now, list):
		return nil
	case len(list) == 0 && !d.theirs.Has("imports"):
		return d.Delete("imports")
	}
	return d.Set([]string{"imports"}, list)
}

// importedFiles are the files that a list leads to, in the order in which containerd reads them. A file that is planned,
// but not there yet, counts.
func importedFiles(m sdk.Machine, parent string, list []string, planned ...string) ([]string, error) {
	var files []string
	for _, pattern := range list {
		pattern = filepath.Clean(pattern)
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(filepath.Dir(parent), pattern)
		}
		if !strings.Contains(pattern, "*") {
			files = append(files, pattern)
			continue
		}
		names, err := m.FS.ReadDir(filepath.Dir(pattern))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, file := range planned {
			if filepath.Dir(file) == filepath.Dir(pattern) && !slices.Contains(names, filepath.Base(file)) {
				names = append(names, filepath.Base(file))
			}
		}
		slices.Sort(names)
		for _, name := range names {
			// A name with a dot in front is matched by filepath.Glob, too.
			if ok, err := filepath.Match(filepath.Base(pattern), name); err != nil {
				return nil, sdk.Precondition(parent+": imports has a pattern that is none: "+pattern, "correct the file, then run again")
			} else if ok {
				files = append(files, filepath.Join(filepath.Dir(pattern), name))
			}
		}
	}
	return files, nil
}

// checkImported refuses, on containerd 1.x, an imported file that would replace what the main file says of a plugin.
func checkImported(m sdk.Machine, d mainDocument, i installation, settings []setting, asked []string) error {
	list, err := importsOf(d.Document, d.path)
	if err != nil {
		return err
	}
	files, err := importedFiles(m, d.path, append(slices.Clone(asked), list...))
	if err != nil {
		return err
	}
	for _, file := range files {
		if file == dropInFile(m) {
			continue
		}
		imported, err := readImported(m, file)
		if err != nil {
			return err
		}
		if imported == nil {
			return sdk.Precondition(d.path+" imports "+file+", which is not there: containerd "+i.release.String()+" does not start so",
				"remove it from imports, or make the file")
		}
		for _, s := range settings {
			if len(s.path) > 2 && s.path[0] == "plugins" && imported.Has("plugins", s.path[1]) {
				return sdk.Precondition(fmt.Sprintf("%s, which %s imports, sets %s: containerd %s then forgets what the main file says of this plugin, %s among it",
					file, d.path, dotted(s.path[:2]), i.release, s.field),
					"move the keys of this table from "+file+" to "+d.path+", then run again")
			}
		}
	}
	return nil
}

// readImported is nil for a file that is not there.
func readImported(m sdk.Machine, file string) (*tomledit.Document, error) {
	text, err := m.FS.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d, err := tomledit.Parse(text)
	return d, edited(file, err)
}
