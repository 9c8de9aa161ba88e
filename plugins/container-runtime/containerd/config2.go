package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/machineadm/machineadm/sdk"
)

const dropInHeader = "# Written by machineadm, which replaces this file. Others go beside it, or into the main file.\n"

// inDropIn writes the settings into a file of our own, which the main file imports. What is imported later wins, so the
// settings do over the main file; an import behind ours is found out by the check of the whole.
func (c *configuration) inDropIn(m sdk.Machine, d mainDocument, i installation, settings []setting, imports []string) error {
	settings = noOldBinDir(d, settings)
	list, err := listImports(m, d, imports, func(list []string) (string, error) { return ownPattern(m, d, list, c) })
	if err != nil {
		return err
	}
	blank := len(slices.DeleteFunc(d.theirs.Keys(), func(key string) bool { return key == "imports" || key == "version" })) == 0
	overMain := slices.DeleteFunc(slices.Clone(settings), func(s setting) bool { return !cannotOverride(d, s) })
	if err := c.withdraw(d, overMain, "version", "imports", "disabled_plugins"); err != nil {
		return err
	}
	if blank && !d.theirs.Has("version") {
		if err := d.Set([]string{"version"}, int64(dropInFormat)); err != nil {
			return err
		}
	}
	if err := setImports(d, list); err != nil {
		return err
	}
	for _, s := range overMain {
		if err := d.Set(s.path, s.value); err != nil {
			return err
		}
	}
	text, err := renderDropIn(m, d, i, list, settings)
	if err != nil {
		return err
	}
	c.settings = settings
	c.mainSpec(d, false)
	c.dropIn = &sdk.FileSpec{Path: dropInFile(m), Content: text, Mode: 0o644, Sensitive: anySecret(settings)}
	if anySecret(settings) {
		c.dropIn.Mode = 0o600
	}
	return nil
}

// dropInFormat is read by every containerd 2.x.
const dropInFormat = 3

// cannotOverride says whether a drop-in cannot change what the main file says: outside of plugins, containerd takes a
// zero for a value that is not given.
func cannotOverride(d mainDocument, s setting) bool {
	return s.path[0] != "plugins" && reflect.ValueOf(s.value).IsZero() && d.theirs.Has(s.path...)
}

// noOldBinDir clears the one directory of plugins that a main file names in the way of before 2.1: with it and the list
// that replaces it, the Container Runtime Interface does not start.
func noOldBinDir(d mainDocument, settings []setting) []setting {
	cni := []string{"plugins", runtimePlugin, "cni"}
	old := append(slices.Clone(cni), "bin_dir")
	is := func(path []string) func(setting) bool {
		return func(s setting) bool { return slices.Equal(s.path, path) }
	}
	at := slices.IndexFunc(settings, is(append(slices.Clone(cni), "bin_dirs")))
	if at < 0 || slices.ContainsFunc(settings, is(old)) {
		return settings
	}
	if value, _ := d.theirs.Get(old...); value != nil && value != "" {
		return append(settings, setting{path: old, value: "", field: settings[at].field})
	}
	return settings
}

// ownPattern is what imports must have besides; empty when it covers the drop-in. Other files that lie in conf.d and
// were not read so far are not turned on by the way: then the drop-in alone is named.
func ownPattern(m sdk.Machine, d mainDocument, list []string, c *configuration) (string, error) {
	own := dropInFile(m)
	covered, err := importedFiles(m, d.path, list, own)
	if err != nil || slices.Contains(covered, own) {
		return "", err
	}
	names, err := m.FS.ReadDir(filepath.Dir(own))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	idle := slices.DeleteFunc(names, func(name string) bool {
		file := filepath.Join(filepath.Dir(own), name)
		return filepath.Ext(name) != ".toml" || file == own || slices.Contains(covered, file)
	})
	if len(idle) == 0 {
		return pathsOf(m.Target.OS).imports, nil
	}
	c.warnings = append(c.warnings, sdk.Warning{Message: "containerd does not read " + strings.Join(idle, ", ") + " in " +
		filepath.Dir(own) + ", because imports of " + d.path + " does not name it; that stays so"})
	return own, nil
}

// renderDropIn writes the settings as a file of its own. Until 2.2, containerd translates all files or none, by the
// version of the last one: a main file of version 2 would lose what it says of CRI below a drop-in of version 3.
func renderDropIn(m sdk.Machine, d mainDocument, i installation, list []string, settings []setting) ([]byte, error) {
	format := int64(dropInFormat)
	if !i.release.translatesEachFile() {
		oldest, err := oldestFormat(m, d, list)
		if err != nil {
			return nil, err
		}
		format = min(format, oldest)
	}
	tree := map[string]any{}
	for _, s := range settings {
		place, value := s.path, s.value
		if format == 2 {
			var ok bool
			if place, value, ok = inVersion2(s); !ok {
				return nil, sdk.Precondition(d.path+" is of format version 2, in which "+s.field+" cannot be said",
					"write that file in version 3, or install containerd 2.3 or later")
			}
		}
		put(tree, place, value)
	}
	text, err := toml.Marshal(tree)
	if err != nil {
		return nil, errors.New("render the drop-in of containerd") // never %w: it could quote a value
	}
	return fmt.Appendf(nil, "%sversion = %d\n\n%s", dropInHeader, format, text), nil
}

// oldestFormat is 2 when a file that the daemon reads besides ours is of that version and has something to translate.
func oldestFormat(m sdk.Machine, d mainDocument, list []string) (int64, error) {
	if d.version == 2 && d.theirs.Has("plugins") {
		return 2, nil
	}
	files, err := importedFiles(m, d.path, list)
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		if file == dropInFile(m) {
			continue
		}
		imported, err := readImported(m, file)
		if err != nil {
			return 0, err
		}
		if imported != nil && versionOf(imported) == 2 && imported.Has("plugins") {
			return 2, nil
		}
	}
	return dropInFormat, nil
}

func put(tree map[string]any, place []string, value any) {
	for _, key := range place[:len(place)-1] {
		below, ok := tree[key].(map[string]any)
		if !ok {
			below = map[string]any{}
			tree[key] = below
		}
		tree = below
	}
	tree[place[len(place)-1]] = value
}
