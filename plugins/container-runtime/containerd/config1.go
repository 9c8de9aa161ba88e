package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/tomledit"
	"github.com/machineadm/machineadm/sdk"
)

// inMain writes the settings into the main file: a file that containerd 1.x imports replaces whole tables of plugins.
func (c *configuration) inMain(m sdk.Machine, p present, i installation, settings []setting) error {
	d := p.main
	if err := toVersion2(d); err != nil {
		return err
	}
	settings = ordered(completeRuntimes(d.theirs, settings))
	if err := p.replaced(i.release, settings); err != nil {
		return err
	}
	if err := p.overridden(i.release, settings); err != nil {
		return err
	}
	if err := c.withdraw(d, settings, "version", "disabled_plugins", "imports"); err != nil {
		return err
	}
	if err := setImports(d, p.imports); err != nil {
		return err
	}
	for _, s := range settings {
		if err := d.Set(s.path, s.value); err != nil {
			return err
		}
	}
	c.settings = settings
	c.mainSpec(d, anySecret(settings))
	// The drop-in of a containerd 2.x that was here before: 1.7 would not start with it.
	if _, err := m.FS.Lstat(dropInFile(m)); err == nil {
		c.dropIn = &sdk.FileSpec{Path: dropInFile(m), Content: []byte(unusedDropIn), Mode: 0o644}
	}
	return nil
}

// unusedDropIn is the drop-in on containerd 1.x, after a downgrade.
const unusedDropIn = dropInHeader + "# containerd 1.x is configured in the main file.\n"

// toVersion2 makes a file one of version 2, when it says the same in both.
func toVersion2(d mainDocument) error {
	if d.version == 2 {
		return nil
	}
	old := slices.DeleteFunc(d.theirs.Keys("plugins"), func(name string) bool { return strings.Contains(name, ".") })
	for _, list := range []string{"disabled_plugins", "required_plugins"} {
		value, _ := d.Get(list)
		names, _ := value.([]any)
		for _, name := range names {
			if text, ok := name.(string); ok && !strings.Contains(text, ".") {
				old = append(old, text)
			}
		}
	}
	if len(old) > 0 {
		return sdk.Precondition(d.path+" is of format version 1 and names plugins in its way: "+strings.Join(old, ", "),
			"write the file in version 2 (version = 2, and plugins by their full names such as "+criPlugin+"), or move it away")
	}
	return d.Set([]string{"version"}, int64(2))
}

// ordered puts what is near the top first, so that a new file reads from the outside to the inside.
func ordered(settings []setting) []setting {
	return slices.SortedStableFunc(slices.Values(settings), func(a, b setting) int {
		return cmp.Or(cmp.Compare(len(a.path), len(b.path)), slices.Compare(a.path, b.path))
	})
}

// completeRuntimes adds what containerd 1.x forgets as soon as a file says anything about runtimes: the type of each, and
// the default one.
func completeRuntimes(theirs *tomledit.Document, settings []setting) []setting {
	at := []string{"plugins", criPlugin, "containerd"}
	runtimes := append(slices.Clone(at), "runtimes")
	touched := map[string]string{} // runtime to field
	typed := map[string]bool{}
	standard, field := "runc", ""
	if name, _ := theirs.Get(append(slices.Clone(at), "default_runtime_name")...); name != nil {
		standard, _ = name.(string)
	}
	for _, s := range settings {
		switch {
		case slices.Equal(s.path, append(slices.Clone(at), "default_runtime_name")):
			standard, _ = s.value.(string)
			field = s.field
		case len(s.path) > len(runtimes) && slices.Equal(s.path[:len(runtimes)], runtimes):
			name := s.path[len(runtimes)]
			if _, ok := touched[name]; !ok {
				touched[name] = s.field
			}
			typed[name] = typed[name] || s.path[len(s.path)-1] == "runtime_type"
		}
	}
	if len(touched) == 0 && field == "" {
		return settings
	}
	if _, ok := touched[standard]; !ok && (standard == "runc" || standard == "crun") {
		touched[standard] = field
	}
	for _, name := range sortedKeys(touched) {
		place := append(slices.Clone(runtimes), name, "runtime_type")
		if has, _ := theirs.Get(place...); typed[name] || has != nil && has != "" {
			continue
		}
		settings = append(settings, setting{path: place, value: "io.containerd.runc.v2", field: touched[name]})
	}
	return settings
}

// withdraw takes away what an earlier run added and nobody wants any more. What is kept at the top is named.
func (c *configuration) withdraw(d mainDocument, settings []setting, kept ...string) error {
	wanted := func(path []string) bool {
		if len(path) == 1 && slices.Contains(kept, path[0]) {
			return true
		}
		return slices.ContainsFunc(settings, func(s setting) bool { return slices.Equal(s.path, path) })
	}
	var left []string
	for _, o := range d.Owned() {
		switch {
		case wanted(o.Path) || !d.Has(o.Path...) || o.Table && len(d.Keys(o.Path...)) > 0:
		case o.Changed:
			left = append(left, dotted(o.Path))
		default:
			if err := d.Delete(o.Path...); err != nil {
				return err
			}
		}
	}
	if len(left) > 0 {
		c.warnings = append(c.warnings, sdk.Warning{Message: fmt.Sprintf(
			"%s: no longer in the document; the value of an earlier run stays: %s", d.path, strings.Join(left, ", "))})
	}
	return nil
}
