package layout

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/pelletier/go-toml/v2"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

const dropInHeader = "# Written by machineadm, which replaces this file. Others go beside it, or into the main file.\n"

// inDropIn writes the settings into a file of our own, which the main file imports. What is imported later wins, so the
// settings do over the main file; an import behind ours is found out by the check of the whole.
func (c *Configuration) inDropIn(m sdk.Machine, p present, r settings.Release, desired []settings.Setting) error {
	d := p.main
	desired = noOldBinDir(d, desired)
	if err := p.overridden(r, desired); err != nil {
		return err
	}
	blank := len(slices.DeleteFunc(d.theirs.Keys(), func(key string) bool { return key == "imports" || key == "version" })) == 0
	overMain := slices.DeleteFunc(slices.Clone(desired), func(s settings.Setting) bool { return !cannotOverride(d, s) })
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
		if err := d.Set(s.Path, s.Value); err != nil {
			return err
		}
	}
	text, err := renderDropIn(p, r, desired)
	if err != nil {
		return err
	}
	c.Settings = desired
	c.mainSpec(d, false)
	c.DropIn = &sdk.FileSpec{Path: settings.PathsOf(m.Target.OS).DropIn, Content: text, Mode: 0o644, Sensitive: anySecret(desired)}
	if anySecret(desired) {
		c.DropIn.Mode = 0o600
	}
	return nil
}

// dropInFormat is read by every containerd 2.x.
const dropInFormat = 3

// cannotOverride says whether a drop-in cannot change what the main file says: outside of plugins, containerd takes a
// zero for a value that is not given.
func cannotOverride(d mainDocument, s settings.Setting) bool {
	return s.Path[0] != "plugins" && reflect.ValueOf(s.Value).IsZero() && d.theirs.Has(s.Path...)
}

// noOldBinDir clears the one directory of plugins that a main file names in the way of before 2.1: with it and the list
// that replaces it, the Container Runtime Interface does not start.
func noOldBinDir(d mainDocument, desired []settings.Setting) []settings.Setting {
	cni := []string{"plugins", settings.RuntimePlugin, "cni"}
	old := append(slices.Clone(cni), "bin_dir")
	is := func(path []string) func(settings.Setting) bool {
		return func(s settings.Setting) bool { return slices.Equal(s.Path, path) }
	}
	at := slices.IndexFunc(desired, is(append(slices.Clone(cni), "bin_dirs")))
	if at < 0 || slices.ContainsFunc(desired, is(old)) {
		return desired
	}
	if value, _ := d.theirs.Get(old...); value != nil && value != "" {
		return append(desired, settings.Setting{Path: old, Value: "", Field: desired[at].Field})
	}
	return desired
}

// renderDropIn writes the settings as a file of its own. Until 2.2, containerd translates all files or none, by the
// version of the last one: a main file of version 2 would lose what it says of CRI below a drop-in of version 3.
func renderDropIn(p present, r settings.Release, desired []settings.Setting) ([]byte, error) {
	format := dropInFormat
	if !r.TranslatesEachFile() && slices.ContainsFunc(p.foreign(), func(l layer) bool {
		return versionOf(l.Document) == 2 && l.Has("plugins")
	}) {
		format = 2
	}
	tree := map[string]any{}
	for _, s := range desired {
		place, value := s.Path, s.Value
		if format == 2 {
			var ok bool
			if place, value, ok = inVersion2(s); !ok {
				return nil, sdk.Precondition(p.main.path+" or what it imports is of format version 2, in which "+s.Field+" cannot be said",
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
