package layout

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/tomledit"
	"github.com/machineadm/machineadm/sdk"
)

// maxPath is the length of a file name that every file system accepts.
const maxPath = 255

// ImportsOf is the list of imports of a file.
func ImportsOf(d *tomledit.Document, file string) ([]string, error) {
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

// listing is the names in a directory. It is empty for a path that is not a directory.
func listing(m sdk.Machine, directory string) ([]string, error) {
	info, err := m.FS.Stat(directory)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode.IsDir() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return m.FS.ReadDir(directory)
}

// glob is filepath.Glob in the target.
func glob(m sdk.Machine, pattern, planned string) ([]string, error) {
	if _, err := filepath.Match(pattern, ""); err != nil || strings.ContainsFunc(pattern, unicode.IsControl) || len(pattern) > maxPath {
		return nil, filepath.ErrBadPattern
	}
	directories := []string{filepath.Dir(pattern)}
	special := `*?[\`
	if filepath.Separator == '\\' {
		special = `*?[`
	}
	if strings.ContainsAny(directories[0], special) {
		var err error
		if directories, err = glob(m, directories[0], filepath.Dir(planned)); err != nil {
			return nil, err
		}
	}
	var files []string
	for _, directory := range directories {
		names, err := listing(m, directory)
		if err != nil {
			return nil, err
		}
		if filepath.Dir(planned) == directory && !slices.Contains(names, filepath.Base(planned)) {
			names = append(names, filepath.Base(planned))
		}
		slices.Sort(names)
		for _, name := range names {
			if ok, err := filepath.Match(filepath.Base(pattern), name); err != nil {
				return nil, err
			} else if ok {
				files = append(files, filepath.Join(directory, name))
			}
		}
	}
	return files, nil
}

// ImportedFiles are the files that a list leads to, in the order in which containerd reads them. The planned file counts
// where it does not exist yet. Source: resolveImports in containerd's cmd/containerd/server/config.
func ImportedFiles(m sdk.Machine, parent string, list []string, planned string) ([]string, error) {
	var files []string
	for _, pattern := range list {
		pattern = filepath.Clean(pattern)
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(filepath.Dir(parent), pattern)
		}
		if !strings.Contains(pattern, "*") && !strings.ContainsFunc(pattern, unicode.IsControl) && len(pattern) <= maxPath {
			files = append(files, pattern)
			continue
		}
		found, err := glob(m, pattern, planned)
		if errors.Is(err, filepath.ErrBadPattern) {
			return nil, sdk.Precondition(parent+": imports has an entry that is neither a path nor a pattern", "correct the file, then run again")
		}
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	return files, nil
}

// listImports returns the desired list of imports of the main file: the entries of the document, the entries that are
// there, and, for containerd 2.x, the drop-in where no pattern covers it. The drop-in is the only entry that is ours.
func listImports(m sdk.Machine, d mainDocument, asked []string, withDropIn bool) ([]string, error) {
	list, err := ImportsOf(d.Document, d.path)
	if err != nil {
		return nil, err
	}
	own := settings.PathsOf(m.Target.OS).DropIn
	list = slices.DeleteFunc(list, func(entry string) bool { return entry == own })
	front := slices.DeleteFunc(slices.Clone(asked), func(entry string) bool { return slices.Contains(list, entry) })
	list = append(front, list...)
	if !withDropIn {
		return list, nil
	}
	files, err := ImportedFiles(m, d.path, list, own)
	if err != nil || slices.Contains(files, own) {
		return list, err
	}
	return append(list, own), nil
}

// setImports writes the list. It deletes a key that is ours and has become empty.
func setImports(d mainDocument, list []string) error {
	now, err := ImportsOf(d.Document, d.path)
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
