package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/pelletier/go-toml/v2"

	"github.com/machineadm/machineadm/sdk"
)

const dropInHeader = "# Written by machineadm, which replaces this file. Others go beside it, or into the main file.\n"

// inDropIn writes the settings into a file of our own, which the main file imports. What is imported later wins, so the
// settings do over the main file; an import behind ours is found out by the check of the whole.
func (c *configuration) inDropIn(m sdk.Machine, p present, i installation, settings []setting) error {
	d := p.main
	settings = noOldBinDir(d, settings)
	if err := p.overridden(i.release, settings); err != nil {
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
	if err := setImports(d, p.imports); err != nil {
		return err
	}
	for _, s := range overMain {
		if err := d.Set(s.path, s.value); err != nil {
			return err
		}
	}
	text, err := renderDropIn(p, i, settings)
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

// renderDropIn writes the settings as a file of its own. Until 2.2, containerd translates all files or none, by the
// version of the last one: a main file of version 2 would lose what it says of CRI below a drop-in of version 3.
func renderDropIn(p present, i installation, settings []setting) ([]byte, error) {
	format := dropInFormat
	if !i.release.translatesEachFile() && slices.ContainsFunc(p.foreign(), func(l layer) bool {
		return versionOf(l.Document) == 2 && l.Has("plugins")
	}) {
		format = 2
	}
	tree := map[string]any{}
	for _, s := range settings {
		place, value := s.path, s.value
		if format == 2 {
			var ok bool
			if place, value, ok = inVersion2(s); !ok {
				return nil, sdk.Precondition(p.main.path+" or what it imports is of format version 2, in which "+s.field+" cannot be said",
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
